// Tabs of a page. The address names the one that is shown.

import { freshId, h, nodes, readdress } from './dom.js';

/**
 * @typedef {object} Panel
 * @property {string} name in the address
 * @property {string} heading
 * @property {() => import('./dom.js').Child | import('./dom.js').Child[]} content made when the panel is first shown
 */

/**
 * @param {import('./parts.js').Page} page
 * @param {string} label
 * @param {Panel[]} panels
 */
export function tabs(page, label, panels) {
  const wanted = page.query.get('tab');
  let shown = Math.max(
    0,
    panels.findIndex(({ name }) => name === wanted),
  );
  const ids = panels.map(() => [freshId(), freshId()]);
  const boxes = panels.map(({ heading }, index) =>
    h(
      'div',
      { id: ids[index]?.[1], role: 'tabpanel', 'aria-labelledby': ids[index]?.[0], tabindex: '0', class: 'page-body' },
      h('h2', { class: 'print-only' }, heading),
    ),
  );
  const buttons = panels.map(({ heading }, index) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: ids[index]?.[0],
        'aria-controls': ids[index]?.[1],
        onclick: () => {
          shown = index;
          page.query.set('tab', panels[index]?.name ?? '');
          readdress(`${location.hash.split('?')[0]}?${page.query}`);
          show();
        },
      },
      heading,
    ),
  );
  /** @type {Set<number>} */
  const made = new Set();
  const show = () => {
    const content = panels[shown]?.content;
    if (content && !made.has(shown)) boxes[shown]?.append(...nodes([content()].flat()));
    made.add(shown);
    buttons.forEach((button, index) => {
      button.setAttribute('aria-selected', String(index === shown));
      button.tabIndex = index === shown ? 0 : -1;
      boxes[index]?.toggleAttribute('hidden', index !== shown);
    });
  };
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
