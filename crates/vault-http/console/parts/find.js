// Finds pages, credentials, namespaces, integrations, users and what can be done with them by any part of their names.

import { call, query } from './api.js';
import { freshId, go, h } from './dom.js';
import { openDialog } from './parts.js';
import { loadAll } from './list.js';
import { TYPE_NAMES, isKeyless, place } from '../pages/credentials.js';
import * as session from './session.js';
import { THEMES, chooseTheme } from './theme.js';

/** @typedef {{kind: string, name: string, more: string, href: string, act?: () => void}} Thing */

/** Maximum number of shown results. */
const MOST = 12;

/**
 * What can be done, but for actions on single objects.
 * @param {() => void} signOut
 * @returns {Thing[]}
 */
function actions(signOut) {
  const action = (
    /** @type {string} */ name,
    /** @type {string} */ href,
    /** @type {(() => void) | undefined} */ act = undefined,
  ) => ({ kind: 'action', name, more: '', href, act });
  return [
    ...(session.mayWrite() ? [action('Add a credential', '#/credentials/new')] : []),
    ...(session.isAdmin()
      ? [
          action('Create an integration', '#/integrations?create=yes'),
          action('Invite user', '#/accounts?invite=yes'),
          action('Denied jobs', `#/audit${query({ action: 'denied' })}`),
          action('Failed sign-ins', `#/audit${query({ action: 'sign-ins' })}`),
          action('Who used a credential', `#/audit${query({ action: 'used' })}`),
          action('Changes by people', `#/audit${query({ action: 'changes' })}`),
        ]
      : []),
    action('Expiring credentials', `#/credentials${query({ within: '30', sort: 'Expires' })}`),
    action('Failing credentials', `#/credentials${query({ health: 'failing' })}`),
    ...THEMES.map(([name, text]) => action(`Theme: ${text}`, '', () => chooseTheme(name))),
    action('Keys and help', '', () => void import('./keys.js').then(({ showKeys }) => showKeys())),
    action('Sign out', '', signOut),
  ];
}

/**
 * @param {{href: string, name: string}[]} places
 * @param {[string, string][]} recent addresses and names of objects that were shown, the latest first
 * @param {() => void} signOut
 */
export function find(places, recent, signOut) {
  /** @type {Thing[]} */
  let things = [
    ...recent.map(([href, name]) => ({ kind: 'recent', name, more: '', href })),
    ...places.map(({ href, name }) => ({ kind: 'page', name, more: '', href })),
    ...actions(signOut),
  ];
  const id = freshId();
  const results = h('ul', { id, role: 'listbox', 'aria-label': 'Results', class: 'results' });
  const status = h('p', { class: 'hint', role: 'status' });
  const input = h('input', {
    type: 'text',
    role: 'combobox',
    'aria-label': 'Find',
    'aria-expanded': 'true',
    'aria-controls': id,
    'aria-autocomplete': 'list',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Find or do: a name, a bucket, a label, rotate, invite, freeze…',
    translate: 'no',
  });
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
    if (thing.act) thing.act();
    else go(thing.href);
  };
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = things
      .flatMap((thing) => {
        const [name, all] = [
          thing.name.toLowerCase(),
          `${thing.kind} ${thing.name} ${thing.more} ${thing.href}`.toLowerCase(),
        ];
        // Without a word, recently opened pages come first. With one, its own entry does.
        if (!words.every((word) => all.includes(word)) || (words.length > 0 && thing.kind === 'recent')) return [];
        // Names that start with the word come first, then those that contain it.
        const first = words[0] ?? '';
        return [{ thing, rank: name.startsWith(first) ? 0 : name.includes(first) ? 1 : 2 }];
      })
      .sort((one, other) => one.rank - other.rank);
    shown = found.slice(0, MOST).map(({ thing }) => thing);
    at = 0;
    results.replaceChildren(
      ...shown.map((thing) =>
        h(
          'li',
          { role: 'option', id: freshId(), onclick: () => follow(thing) },
          h('span', { class: 'badge plain' }, thing.kind),
          h('span', { translate: 'no' }, thing.name, thing.more && h('span', { class: 'hint' }, ` ${thing.more}`)),
        ),
      ),
    );
    status.textContent =
      found.length > MOST
        ? `${found.length} found. Type more to narrow them.`
        : found.length
          ? ''
          : `No results for “${input.value.trim()}”`;
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
      const writes = session.mayWrite();
      return [
        ...credentials.map((row) => ({
          kind: 'credential',
          name: row.namespace,
          more: [
            TYPE_NAMES[row.type],
            place(row),
            row.description,
            ...Object.entries(row.labels ?? {}).map(([name, value]) => `${name}:${value}`),
          ]
            .filter(Boolean)
            .join(' · '),
          href: `#/credentials/${row.id}`,
        })),
        ...[...new Set(credentials.map(({ namespace }) => namespace))].map((namespace) => ({
          kind: 'namespace',
          name: namespace,
          more: '',
          href: `#/credentials${query({ namespace })}`,
        })),
        ...(writes
          ? credentials.flatMap(({ id, namespace, type, staged_version: staged }) => [
              {
                kind: 'action',
                name: `${isKeyless(type) && !staged ? 'Change data of' : 'Rotate'} ${namespace}`,
                more: TYPE_NAMES[type],
                href: `#/credentials/${id}/${staged ? 'rotate' : 'replace'}`,
              },
              {
                kind: 'action',
                name: `Connect a job to ${namespace}`,
                more: '',
                href: `#/credentials/${id}${query({ connect: 'yes' })}`,
              },
            ])
          : []),
        ...(admin
          ? [...new Set(credentials.map(({ namespace }) => namespace))].map((namespace) => ({
              kind: 'action',
              name: `Freeze ${namespace}`,
              more: '',
              href: `#/namespaces${query({ freeze: namespace })}`,
            }))
          : []),
      ];
    }),
    ...(admin
      ? [
          call('GET', '/integrations?limit=1000').then(({ body }) =>
            body.map((/** @type {import('./api.js').Integration} */ { id, name, namespaces }) => ({
              kind: 'integration',
              name,
              more: namespaces.join(', '),
              href: `#/integrations/${id}`,
            })),
          ),
          call('GET', '/accounts?limit=1000').then(({ body }) =>
            body.map((/** @type {import('./api.js').Account} */ { email, role }) => ({
              kind: 'person',
              name: email,
              more: role,
              href: `#/accounts${query({ email })}`,
            })),
          ),
        ]
      : []),
  ];
  // What cannot be loaded is not found; the rest is.
  return (await Promise.allSettled(lists)).flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
}
