// Tabs of a page. The address names the one that is shown.

import { freshId, h, readdress } from './dom.js';

/**
 * @param {import('./parts.js').Page} page
 * @param {string} label
 * @param {[string, string, import('./dom.js').Child[]][]} panels the name in the address, the heading and the content of each
 */
export function tabs(page, label, panels) {
  const wanted = page.query.get('tab');
  let shown = Math.max(
    0,
    panels.findIndex(([name]) => name === wanted),
  );
  const ids = panels.map(() => [freshId(), freshId()]);
  const boxes = panels.map(([, heading, content], index) =>
    h(
      'div',
      { id: ids[index]?.[1], role: 'tabpanel', 'aria-labelledby': ids[index]?.[0], tabindex: '0', class: 'page-body' },
      h('h2', { class: 'print-only' }, heading),
      content,
    ),
  );
  const buttons = panels.map(([, heading], index) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: ids[index]?.[0],
        'aria-controls': ids[index]?.[1],
        onclick: () => {
          shown = index;
          page.query.set('tab', panels[index]?.[0] ?? '');
          readdress(`${location.hash.split('?')[0]}?${page.query}`);
          show();
        },
      },
      heading,
    ),
  );
  const show = () =>
    buttons.forEach((button, index) => {
      button.setAttribute('aria-selected', String(index === shown));
      button.tabIndex = index === shown ? 0 : -1;
      boxes[index]?.toggleAttribute('hidden', index !== shown);
    });
  show();
  const bar = h(
    'div',
    {
      role: 'tablist',
      'aria-label': label,
      class: 'tabs',
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const last = buttons.length - 1;
        const to = {
          ArrowRight: shown === last ? 0 : shown + 1,
          ArrowLeft: shown === 0 ? last : shown - 1,
          Home: 0,
          End: last,
        }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        buttons[to]?.click();
        buttons[to]?.focus();
      },
    },
    buttons,
  );
  return h('div', { class: 'tabbed' }, bar, boxes);
}
