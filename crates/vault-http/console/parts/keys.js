// Shortcuts of single keys, and the list of them.

import { go, h } from './dom.js';
import { checkbox } from './forms.js';
import { openDialog, openDialogs } from './parts.js';
import { chooseKeys, singleKeys } from './theme.js';
import * as session from './session.js';

/** Pages by the key that follows `g`, and whether they are for admins only. @type {Record<string, [string, string, boolean]>} */
const PAGES = {
  o: ['#/overview', 'Overview', false],
  c: ['#/credentials', 'Credentials', false],
  i: ['#/integrations', 'Integrations', true],
  n: ['#/namespaces', 'Namespaces', true],
  u: ['#/accounts', 'Accounts', true],
  a: ['#/audit', 'Audit', true],
};
/** How long a key can follow `g`, in milliseconds. */
const PAUSE = 1500;

/** When `g` was pressed. */
let started = 0;

/** Starts to listen for keys. */
export function listen() {
  addEventListener('keydown', (event) => {
    const { target, key } = event;
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.defaultPrevented ||
      !session.token() ||
      !singleKeys() ||
      openDialogs().length
    )
      return;
    if (target instanceof HTMLElement && target.matches('input:not([type="checkbox"]), textarea, select')) return;
    const page = performance.now() - started < PAUSE ? PAGES[key] : undefined;
    started = key === 'g' ? performance.now() : 0;
    if (page) {
      if (!page[2] || session.isAdmin()) go(page[0]);
    } else if (key === '?') showKeys();
    else if (key === 'c' && session.mayWrite()) go('#/credentials/new');
    else if (key === 'j' || key === 'k') move(key === 'j' ? 1 : -1);
    else if (key === 'x') document.activeElement?.closest('tr')?.querySelector('input')?.click();
    else return;
    event.preventDefault();
  });
}

/**
 * Moves the focus to the link of the next or previous row.
 * @param {number} step
 */
function move(step) {
  const links = [...document.querySelectorAll('main tbody tr')].flatMap((row) => row.querySelector('a') ?? []);
  const here = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement));
  const next = links[here < 0 ? 0 : here + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/** Shows the list of keys. */
export function showKeys() {
  const off = checkbox('Shortcuts of single keys', {
    checked: singleKeys(),
    hint: 'Turn them off if you control the browser by voice.',
  });
  off.control.addEventListener('change', () => chooseKeys(off.control.checked));
  /** @type {[string, string][]} */
  const keys = [
    ['/ or Ctrl K', 'Find a page, an object or an action'],
    ...(session.mayWrite() ? [/** @type {[string, string]} */ (['c', 'Add a credential'])] : []),
    ...Object.entries(PAGES)
      .filter(([, [, , admins]]) => !admins || session.isAdmin())
      .map(([key, [, name]]) => /** @type {[string, string]} */ ([`g ${key}`, name])),
    ['j, k', 'Next row, previous row'],
    ['x', 'Select the row'],
    ['Enter', 'Open the row'],
    ['?', 'This list'],
  ];
  openDialog('Keys and help', (close) => [
    h(
      'div',
      { class: 'page-body' },
      h(
        'dl',
        { class: 'keys' },
        keys.map(([key, text]) => h('div', null, h('dt', null, h('kbd', null, key)), h('dd', null, text))),
      ),
      off.row,
      h('p', null, h('a', { href: '/docs' }, 'API reference')),
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close')),
    ),
  ]);
}
