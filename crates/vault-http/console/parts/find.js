// Finds pages, credentials, namespaces, integrations, users and what can be done with them by any part of their names.

import { call, query } from './api.js';
import { freshId, go, h } from './dom.js';
import { openDialog } from './parts.js';
import { loadAll } from './list.js';
import { isKey } from '../rules/keys.js';
import { TYPE_NAMES, isKeyless, place } from '../rules/credentials.js';
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
    ...(session.mayWrite()
      ? [action('Add a credential', '#/credentials/new'), action('A key leaked', '#/leaked')]
      : []),
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
    action('Credentials that expire in 30 days', `#/credentials${query({ within: '30', sort: 'Expires' })}`),
    action('Credentials whose key is refused', `#/credentials${query({ health: 'failing' })}`),
    action('Credentials that could not be checked', `#/credentials${query({ health: 'unreachable' })}`),
    ...THEMES.map(([name, text]) => action(`Theme: ${text}`, '', () => chooseTheme(name))),
    action('Keys and help', '', () => void import('./keys.js').then(({ showKeys }) => showKeys())),
    action('Sign out', '', signOut),
  ];
}

/**
 * The things that contain all words, those whose names start with the first one first.
 * @param {Thing[]} things
 * @param {string[]} words
 */
function matching(things, words) {
  const [first = ''] = words;
  return things
    .flatMap((thing) => {
      const name = thing.name.toLowerCase();
      const all = `${thing.kind} ${name} ${thing.more} ${thing.href}`.toLowerCase();
      // Without a word, recently opened pages come first. With one, its own entry does.
      if (!words.every((word) => all.includes(word)) || (words.length > 0 && thing.kind === 'recent')) return [];
      return [{ thing, rank: name.startsWith(first) ? 0 : name.includes(first) ? 1 : 2 }];
    })
    .sort((one, other) => one.rank - other.rank)
    .map(({ thing }) => thing);
}

/** The dialog of a search: a field with the results below it. */
class Finder {
  /** @type {Thing[]} */
  #things;
  /** @type {Thing[]} */
  #shown = [];
  /** The marked result. */
  #at = 0;
  #results = h('ul', { id: freshId(), role: 'listbox', 'aria-label': 'Results', class: 'results' });
  #status = h('p', { class: 'hint', role: 'status' });
  #input = h('input', {
    type: 'text',
    role: 'combobox',
    'aria-label': 'Find',
    'aria-expanded': 'true',
    'aria-controls': this.#results.id,
    'aria-autocomplete': 'list',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Find or do: a name, a bucket, a key ID, rotate, invite, freeze…',
    translate: 'no',
  });
  #dialog = openDialog('Find', () => [
    h('div', { class: 'page-body' }, h('div', null, this.#input), this.#results, this.#status),
  ]);

  /** @param {Thing[]} things */
  constructor(things) {
    this.#things = things;
    this.#dialog.classList.add('find');
    this.#input.addEventListener('input', () => this.#show());
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#show();
    this.#input.focus();
  }

  /** @param {Thing[]} things that were loaded later */
  add(things) {
    this.#things = [...this.#things, ...things];
    if (this.#dialog.open) this.#show();
  }

  #mark() {
    [...this.#results.children].forEach((item, index) =>
      item.setAttribute('aria-selected', String(index === this.#at)),
    );
    const item = this.#results.children[this.#at];
    if (item) this.#input.setAttribute('aria-activedescendant', item.id);
    else this.#input.removeAttribute('aria-activedescendant');
    item?.scrollIntoView({ block: 'nearest' });
  }

  /** @param {Thing | undefined} thing */
  #follow(thing) {
    if (!thing) return;
    this.#dialog.close();
    if (thing.act) thing.act();
    else go(thing.href);
  }

  #show() {
    const text = this.#input.value.trim();
    const found = matching(this.#things, text.toLowerCase().split(/\s+/).filter(Boolean));
    this.#shown = found.slice(0, MOST);
    if (session.mayWrite() && isKey(text)) {
      // A text that is in no name is more likely a key than a part of an ID.
      const named = this.#shown.some(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
      this.#shown.splice(named ? this.#shown.length : 0, 0, keySearch(text));
    }
    this.#at = 0;
    this.#results.replaceChildren(
      ...this.#shown.map((thing) =>
        h(
          'li',
          { role: 'option', id: freshId(), onclick: () => this.#follow(thing) },
          h('span', { class: 'badge plain' }, thing.kind),
          h('span', { translate: 'no' }, thing.name, thing.more && h('span', { class: 'hint' }, ` ${thing.more}`)),
        ),
      ),
    );
    if (found.length > MOST) this.#status.textContent = `${found.length} found. Type more to narrow them.`;
    else this.#status.textContent = this.#shown.length ? '' : `No results for “${text}”`;
    this.#mark();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const length = this.#shown.length;
    if (step && length) {
      event.preventDefault();
      this.#at = (this.#at + step + length) % length;
      this.#mark();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.#follow(this.#shown[this.#at]);
    }
  }
}

/**
 * @param {{href: string, name: string}[]} places
 * @param {[string, string][]} recent addresses and names of objects that were shown, the latest first
 * @param {() => void} signOut
 */
export function find(places, recent, signOut) {
  const finder = new Finder([
    ...recent.map(([href, name]) => ({ kind: 'recent', name, more: '', href })),
    ...places.map(({ href, name }) => ({ kind: 'page', name, more: '', href })),
    ...actions(signOut),
  ]);
  void load().then((more) => finder.add(more));
}

/**
 * The search of a key in all versions. What was typed may be a whole key, so it is neither shown nor put into an address.
 * @param {string} text
 * @returns {Thing}
 */
function keySearch(text) {
  const search = () => void import('../pages/leaked.js').then(({ searchKey }) => searchKey(text));
  return {
    kind: 'key',
    name: 'Search it as a key',
    more: 'key ID, its last four characters, or fingerprint',
    href: '',
    act: search,
  };
}

/**
 * Credentials, their namespaces, and what can be done with them.
 * @param {import('./api.js').Credential[]} credentials
 * @returns {Thing[]}
 */
function ofCredentials(credentials) {
  const spaces = [...new Set(credentials.map(({ namespace }) => namespace))];
  const action = (/** @type {string} */ name, /** @type {string} */ href, more = '') => ({
    kind: 'action',
    name,
    more,
    href,
  });
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
    ...spaces.map((name) => ({
      kind: 'namespace',
      name,
      more: '',
      href: `#/credentials${query({ namespace: name })}`,
    })),
    ...(session.mayWrite()
      ? credentials.flatMap(({ id, namespace, type, staged_version: staged }) => [
          action(
            `${isKeyless(type) && !staged ? 'Change data of' : 'Rotate'} ${namespace}`,
            `#/credentials/${id}/${staged ? 'rotate' : 'replace'}`,
            TYPE_NAMES[type],
          ),
          action(`Connect a job to ${namespace}`, `#/credentials/${id}${query({ connect: 'yes' })}`),
        ])
      : []),
    ...(session.isAdmin()
      ? spaces.map((name) => action(`Freeze ${name}`, `#/namespaces${query({ freeze: name })}`))
      : []),
  ];
}

/** @returns {Promise<Thing[]>} */
async function load() {
  const lists = [
    loadAll('/organization-vault').then(({ rows }) =>
      ofCredentials(/** @type {import('./api.js').Credential[]} */ (rows)),
    ),
    ...(session.isAdmin()
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
