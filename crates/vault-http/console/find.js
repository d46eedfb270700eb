// Finds pages, credentials, namespaces, integrations and users by any part of their names.

import { call, query } from './api.js';
import { freshId, go, h } from './dom.js';
import { openDialog } from './parts.js';
import { loadAll } from './list.js';
import { TYPE_NAMES, place } from './credentials.js';
import * as session from './session.js';

/** @typedef {{kind: string, name: string, more: string, href: string}} Thing */

/** Results that are shown at once. */
const MOST = 12;

/** @param {{href: string, name: string}[]} places */
export function find(places) {
  /** @type {Thing[]} */
  let things = [
    ...places.map(({ href, name }) => ({ kind: 'page', name, more: '', href })),
    ...(session.mayWrite() ? [{ kind: 'page', name: 'Add a credential', more: '', href: '#/credentials/new' }] : []),
  ];
  const id = freshId();
  const results = h('ul', { id, role: 'listbox', 'aria-label': 'Results', class: 'results' });
  const status = h('p', { class: 'hint', role: 'status' });
  const input = h('input', { type: 'text', role: 'combobox', 'aria-label': 'Find', 'aria-expanded': 'true', 'aria-controls': id, 'aria-autocomplete': 'list', autocomplete: 'off', spellcheck: 'false', placeholder: 'A name, a namespace, a bucket, a label, an id…', translate: 'no' });
  let at = 0;
  /** @type {Thing[]} */
  let shown = [];
  const dialog = openDialog('Find', () => [h('div', { class: 'page-body' }, h('div', null, input), results, status)]);
  dialog.classList.add('find');
  const mark = () => {
    [...results.children].forEach((item, index) => item.setAttribute('aria-selected', String(index === at)));
    const item = results.children[at];
    if (item) input.setAttribute('aria-activedescendant', item.id);
    else input.removeAttribute('aria-activedescendant');
    item?.scrollIntoView({ block: 'nearest' });
  };
  const follow = (/** @type {Thing | undefined} */ thing) => {
    if (!thing) return;
    dialog.close();
    go(thing.href);
  };
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = things.flatMap((thing) => {
      const [name, all] = [thing.name.toLowerCase(), `${thing.kind} ${thing.name} ${thing.more} ${thing.href}`.toLowerCase()];
      if (!words.every((word) => all.includes(word))) return [];
      // Names that begin with what is looked for come first, then those that hold it.
      const first = words[0] ?? '';
      return [{ thing, rank: name.startsWith(first) ? 0 : name.includes(first) ? 1 : 2 }];
    }).sort((one, other) => one.rank - other.rank);
    shown = found.slice(0, MOST).map(({ thing }) => thing);
    at = 0;
    results.replaceChildren(...shown.map((thing) => h('li', { role: 'option', id: freshId(), onclick: () => follow(thing) },
      h('span', { class: 'badge plain' }, thing.kind), h('span', { translate: 'no' }, thing.name, thing.more && h('span', { class: 'hint' }, ` ${thing.more}`)))));
    status.textContent = found.length > MOST ? `${found.length} found. Type more to narrow them.` : found.length ? '' : `No results for “${input.value.trim()}”`;
    mark();
  };
  input.addEventListener('input', show);
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) {
      event.preventDefault();
      at = (at + step + shown.length) % shown.length;
      mark();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      follow(shown[at]);
    }
  });
  show();
  input.focus();
  void load().then((more) => {
    things = [...things, ...more];
    if (dialog.open) show();
  });
}

/** @returns {Promise<Thing[]>} */
async function load() {
  const admin = session.isAdmin();
  const lists = [
    loadAll('/organization-vault').then(({ rows }) => {
      const credentials = /** @type {import('./api.js').Credential[]} */ (rows);
      return [
        ...credentials.map((row) => ({ kind: 'credential', name: row.namespace, more: [TYPE_NAMES[row.type], place(row), row.description, ...Object.entries(row.labels ?? {}).map(([name, value]) => `${name}:${value}`)].filter(Boolean).join(' · '), href: `#/credentials/${row.id}` })),
        ...[...new Set(credentials.map(({ namespace }) => namespace))].map((namespace) => ({ kind: 'namespace', name: namespace, more: '', href: `#/credentials${query({ namespace })}` }))];
    }),
    ...(admin ? [
      call('GET', '/integrations?limit=1000').then(({ body }) => body.map((/** @type {import('./api.js').Integration} */ { id, name, namespaces }) => ({ kind: 'integration', name, more: namespaces.join(', '), href: `#/integrations/${id}` }))),
      call('GET', '/accounts?limit=1000').then(({ body }) => body.map((/** @type {import('./api.js').Account} */ { email, role }) => ({ kind: 'person', name: email, more: role, href: `#/accounts${query({ email })}` }))),
    ] : []),
  ];
  // What cannot be loaded is not found; the rest is.
  return (await Promise.allSettled(lists)).flatMap((list) => list.status === 'fulfilled' ? list.value : []);
}
