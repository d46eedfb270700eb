// The list of credentials.

import { call, query } from '../parts/api.js';
import { matches } from '../rules/denied.js';
import { announce, button, h, readdress } from '../parts/dom.js';
import { checkbox, field, form } from '../parts/forms.js';
import { checkOne } from '../parts/checking.js';
import { healthBadge } from '../parts/health.js';
import { Page, badge, day, live, openDialog } from '../parts/parts.js';
import { confirmFreeze } from '../parts/freezing.js';
import { doSeveral, list, loadAll } from '../parts/list.js';
import * as session from '../parts/session.js';
import { STATES, TYPE_NAMES, fits, place, stateOf } from '../rules/credentials.js';
import { labels } from '../parts/credential.js';
import { isKey } from '../rules/keys.js';
import { deadline } from '../rules/times.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Integration} Integration
 */

/** @type {[string, string][]} */
const TYPES = [['', 'All types'], ...Object.entries(TYPE_NAMES)];
/** @type {[string, string][]} */
const HEALTH = [
  ['', 'Any health'],
  ['failing', 'Key refused'],
  ['unreachable', 'Could not be checked'],
  ['expired', 'Expired'],
  ['expiring', 'Expiring in 14 days'],
  ['unchecked', 'Unchecked'],
  ['healthy', 'Healthy'],
];
/** @type {[string, string][]} */
const EXPIRY = [
  ['', 'Any time'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
];
/** @type {[string, string][]} */
const USE = [
  ['', 'Any time'],
  ['unused', 'Not in 90 days'],
  ['rotation', 'In rotation'],
];
/** Views of the list: filters and an order. @type {{name: string, filter: string, sort?: string}[]} */
const VIEWS = [
  { name: 'All', filter: '' },
  { name: 'Expire in 30 days', filter: 'within=30', sort: 'Expires' },
  { name: 'Key refused', filter: 'health=failing' },
  { name: 'Unreachable', filter: 'health=unreachable' },
  { name: 'Unused', filter: 'use=unused', sort: 'Last used' },
  { name: 'Never checked', filter: 'health=unchecked' },
  { name: 'In rotation', filter: 'use=rotation' },
];
/** How many credentials the list contains. The server searches further ones. */
const LOADED = 5000;
/** Within how many days an expiry is marked. */
const SOON = 30;
/** From how many rows on a label that all of them have is left out. */
const MANY = 10;
/** Labels that a row shows. */
const LABELS = 1;

/**
 * @typedef {object} Loaded
 * @property {Credential[]} rows
 * @property {boolean} partial
 * @property {string[]} names of all namespaces
 * @property {Set<string>} frozen
 * @property {Integration[] | null} active integrations, for admins
 */

class Credentials extends Page {
  #shown = 0;

  label() {
    return 'Credentials';
  }

  async content() {
    if (session.mayWrite())
      this.actions(
        h('a', { class: 'button', href: '#/leaked' }, 'A key leaked'),
        h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'),
      );
    const loaded = await loadList();
    const fields = this.#fields(loaded.rows);
    const box = h('div', { class: 'page-body' });
    const views = h('nav', { class: 'presets', 'aria-label': 'Views' });
    const search = this.#search(fields, () => this.#show(loaded, fields, box, views));
    await this.#show(loaded, fields, box, views);
    const options = loaded.names.slice(0, 1000).map((value) => h('option', { value }));
    return [views, search, h('datalist', { id: 'namespaces' }, options), box];
  }

  /**
   * The filters.
   * @param {Credential[]} rows
   */
  #fields(rows) {
    const get = (/** @type {string} */ name) => this.query.get(name) ?? '';
    const pairs = rows.flatMap(({ labels: all = {} }) =>
      Object.entries(all).map(([name, value]) => `${name}:${value}`),
    );
    const labelNames = [...new Set([...pairs.sort(), get('label')])].filter(Boolean);
    const choice = (
      /** @type {string} */ label,
      /** @type {string} */ name,
      /** @type {[string, string][]} */ options,
    ) => field({ label, pointer: `/${name}`, options, value: get(name) });
    return {
      namespace: field({
        label: 'Namespace',
        pointer: '/namespace',
        value: get('namespace'),
        placeholder: 'any part',
        list: 'namespaces',
        type: 'search',
      }),
      type: choice('Type', 'type', TYPES),
      label: choice('Label', 'label', [
        ['', 'Any label'],
        ...labelNames.map((pair) => /** @type {[string, string]} */ ([pair, pair])),
      ]),
      health: choice('Health', 'health', HEALTH),
      within: choice('Expires', 'within', EXPIRY),
      use: choice('Use', 'use', USE),
    };
  }

  /**
   * Shows the list for the filters.
   * @param {Loaded} loaded
   * @param {Fields} fields
   * @param {HTMLElement} box
   * @param {HTMLElement} views
   */
  async #show(loaded, fields, box, views) {
    this.#shown += 1;
    const shown = this.#shown;
    const filters = chosen(fields);
    const filtered = Object.values(filters).some(Boolean);
    views.replaceChildren(...viewLinks(filters));
    let { rows, partial } = loaded;
    // Not everything is here: the server looks through the rest.
    if (partial && filtered) ({ rows, partial } = await searchServer(filters, loaded.names));
    if (shown !== this.#shown) return;
    const empty = filtered
      ? 'No credential matches these filters.'
      : session.mayWrite()
        ? 'No credentials yet. Add the first one: your jobs can use its secrets, which are never shown again.'
        : 'No credentials yet.';
    rows = rows.filter((row) => fits(row, filters));
    const text = filters.namespace ?? '';
    const search = () => import('./leaked.js').then(({ searchKey }) => searchKey(text));
    const mayBeKey = !rows.length && session.mayWrite() && isKey(text);
    box.replaceChildren(
      this.#list({ ...loaded, rows, partial }, empty),
      ...(mayBeKey ? [h('p', { class: 'buttons' }, button('Search it as a key', search))] : []),
    );
  }

  /**
   * The form with the filters.
   * @param {Fields} fields
   * @param {() => Promise<void>} show
   */
  #search(fields, show) {
    const { namespace, ...others } = fields;
    for (const { row } of Object.values(fields)) row.querySelector('.optional')?.remove();
    const name = h('summary', null, 'Filters');
    const clear = h('a', { class: 'button', href: '#/credentials' }, 'Clear');
    const open = fields.label.control.value !== '' || fields.type.control.value !== '';
    const rows = Object.values(others).map(({ row }) => row);
    const more = h('details', { class: 'more-filters', open }, name, h('div', { class: 'filters' }, rows));
    const mark = () => {
      const used = Object.values(others).filter(({ control }) => control.value).length;
      name.textContent = used ? `Filters (${used})` : 'Filters';
      clear.hidden = !Object.values(chosen(fields)).some(Boolean);
    };
    const change = async () => {
      const now = new URLSearchParams(location.hash.split('?')[1]);
      readdress(`#/credentials${query({ ...chosen(fields), sort: now.get('sort'), down: now.get('down') })}`);
      mark();
      await show();
      announce(this.querySelector('.total')?.textContent || 'No credential matches these filters.');
    };
    const search = form({
      fields: () => [],
      content: [namespace.row, more],
      submit: 'Filter',
      busy: 'Filter',
      send: change,
      buttons: [clear],
    });
    // Rebuilding the list at each key would be slow.
    let soon = 0;
    search.addEventListener('input', () => {
      clearTimeout(soon);
      soon = setTimeout(() => void change(), 120);
    });
    search.querySelector('[type="submit"]')?.toggleAttribute('hidden', true); // the list follows typed text
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Credentials');
    mark();
    return search;
  }

  /**
   * @param {Loaded} loaded
   * @param {string} empty
   */
  #list(loaded, empty) {
    const { rows, partial } = loaded;
    return list({
      caption: 'Credentials',
      noun: 'credential',
      sort: this.query.get('sort') ?? '',
      empty,
      rows,
      partial,
      file: 'credentials',
      rowName: (row) => `${row.namespace} ${TYPE_NAMES[row.type]}`,
      several: session.mayWrite() ? this.#several() : [],
      dense: true,
      // A column in which no row has anything takes its room from the others.
      columns: columnsOf(loaded).filter(
        ({ heading, value }) => heading === 'Last used' || !rows.length || rows.some((row) => value?.(row)),
      ),
    });
  }

  /** What can be done with several. @returns {{name: string, act: (rows: Credential[]) => void}[]} */
  #several() {
    return [
      { name: 'Label', act: (rows) => this.#label(rows) },
      {
        name: 'Check',
        act: (rows) =>
          void doSeveral({
            heading: 'Check',
            rows,
            name: ({ namespace }) => namespace,
            done: () => void this.refresh(),
            act: ({ id }) => checkOne(id),
          }),
      },
      ...(session.isAdmin() ? [{ name: 'Freeze', act: (/** @type {Credential[]} */ rows) => this.#freeze(rows) }] : []),
    ];
  }

  /** @param {Credential[]} rows */
  #label(rows) {
    const name = field({ label: 'Label', pointer: '/name', required: true, mono: true, placeholder: 'team' });
    const value = field({ label: 'Value', pointer: '/value', mono: true, placeholder: 'data' });
    const remove = checkbox('Remove this label instead');
    openDialog(`Label ${rows.length} credentials`, (close) => [
      form({
        fields: () => [name, value],
        content: [h('div', { class: 'pair' }, name.row, value.row), remove.row],
        submit: 'Apply label',
        busy: 'One moment…',
        send: async () => {
          const label = name.read();
          const text = remove.control.checked ? null : value.control.value;
          close();
          void doSeveral({
            heading: `Label ${label}`,
            rows,
            name: (row) => row.namespace,
            done: () => void this.refresh(),
            act: async ({ id }) => {
              await call('PATCH', `/organization-vault/${id}`, { body: { labels: { [label]: text } } });
              return text === null ? 'The label is removed.' : 'The label is set.';
            },
          });
        },
        buttons: [h('button', { type: 'button', onclick: close }, 'Cancel')],
      }),
    ]);
  }

  /** @param {Credential[]} rows */
  #freeze(rows) {
    const spaces = [...new Set(rows.map(({ namespace }) => namespace))];
    void confirmFreeze(spaces, async () => {
      void doSeveral({
        heading: 'Freeze',
        rows: spaces,
        name: (space) => space,
        done: () => void this.refresh(),
        act: async (namespace) => {
          await call('POST', '/namespaces/freeze', { body: { namespace } });
          return 'Frozen: new activations are refused.';
        },
      });
    });
  }
}

/** @typedef {Record<'namespace' | 'type' | 'label' | 'health' | 'within' | 'use', import('../parts/forms.js').Field>} Fields */

/** @param {Fields} fields */
const chosen = (fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, { control }]) => [name, control.value.trim()]));

/** @returns {Promise<Loaded>} */
async function loadList() {
  const [loaded, namespaces, integrations] = await Promise.all([
    loadAll('/organization-vault', LOADED),
    loadAll('/namespaces', LOADED),
    session.isAdmin() ? loadAll('/integrations') : null,
  ]);
  const { rows, partial } = /** @type {{rows: Credential[], partial: boolean}} */ (loaded);
  const spaces = /** @type {import('../parts/api.js').Namespace[]} */ (namespaces.rows);
  const all = [...rows, ...spaces].map(({ namespace }) => namespace);
  return {
    rows,
    partial,
    names: [...new Set(all)].sort(),
    frozen: new Set(spaces.filter(({ frozen }) => frozen).map(({ namespace }) => namespace)),
    active: integrations && /** @type {Integration[]} */ (integrations.rows).filter(({ state }) => state === 'active'),
  };
}

/**
 * @param {Record<string, string>} filters
 * @param {string[]} names
 * @returns {Promise<{rows: Credential[], partial: boolean}>}
 */
function searchServer({ namespace = '', type, label, health, within }, names) {
  const before = new Date(Date.now() + Number(within) * 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z');
  const filter = {
    namespace: names.includes(namespace) ? namespace : '',
    type,
    label,
    health: health === 'unreachable' ? 'failing' : health,
    expires_before: within ? before : '',
  };
  return loadAll(`/organization-vault${query(filter)}`);
}

/** @param {Record<string, string>} filters */
function viewLinks(filters) {
  const now = Object.entries(filters)
    .filter(([, value]) => value)
    .map(([key, value]) => `${key}=${value}`)
    .join('&');
  return VIEWS.map(({ name, filter, sort }) => {
    const href = `#/credentials${filter ? `?${filter}${sort ? `&sort=${sort}` : ''}` : ''}`;
    return h('a', { href, 'aria-current': filter === now ? 'true' : null }, name);
  });
}

/**
 * Labels that every row has, which distinguish none.
 * @param {Credential[]} rows
 */
function commonLabels(rows) {
  const [first, ...others] = rows;
  if (!first || others.length < MANY) return [];
  return Object.entries(first.labels ?? {})
    .filter(([name, value]) => others.every(({ labels: all = {} }) => all[name] === value))
    .map(([name]) => name);
}

/**
 * @param {Loaded} loaded
 * @returns {import('../parts/list.js').Column<Credential>[]}
 */
function columnsOf({ rows, frozen, active }) {
  const common = commonLabels(rows);
  const jobs = (/** @type {Credential} */ { namespace }) =>
    (active ?? []).filter(({ namespaces: patterns }) => matches(patterns, namespace));
  const distinct = ({ labels: all = {} }) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !common.includes(name)));
  return [
    {
      heading: 'Namespace',
      style: 'wide',
      cell: (row) => h('a', { href: `#/credentials/${row.id}`, title: row.namespace }, row.namespace),
      value: (row) => row.namespace,
      group: ({ namespace }) => (namespace.includes('/') ? `${namespace.split('/')[0]}/` : 'Other'),
    },
    {
      heading: 'Status',
      style: 'state',
      cell: (row) => stateBadge(row, frozen),
      value: (row) => stateOf(row, frozen),
      order: (row) => STATES.indexOf(stateOf(row, frozen)),
    },
    { heading: 'Expires', style: 'when ends', cell: expiry, value: ({ expires_at: at }) => at },
    {
      heading: 'Last used',
      style: 'when',
      cell: ({ last_activated_at: at }) => (at ? live('relative', at) : day(at, 'never')),
      value: ({ last_activated_at: at }) => at,
    },
    {
      heading: 'Allowed jobs',
      cell: (row) => jobNames(jobs(row)),
      value: (row) =>
        jobs(row)
          .map(({ name }) => name)
          .join(', '),
    },
    {
      heading: 'Type',
      style: 'roomiest',
      cell: ({ type }) => h('span', { title: TYPE_NAMES[type] }, TYPE_NAMES[type]),
      value: ({ type }) => TYPE_NAMES[type],
    },
    {
      heading: 'Where',
      cell: (row) => h('span', { translate: 'no', title: place(row) }, place(row)),
      value: (row) => place(row),
    },
    {
      heading: 'Labels',
      style: 'roomy',
      cell: (row) => labels({ labels: distinct(row) }, LABELS),
      value: (row) =>
        Object.entries(row.labels ?? {})
          .map(([label, value]) => `${label}:${value}`)
          .join(' '),
    },
  ];
}

/**
 * @param {Credential} row
 * @param {Set<string>} frozen
 */
function stateBadge(row, frozen) {
  const state = stateOf(row, frozen);
  if (state === 'damaged') return badge(state, 'bad');
  if (state === 'frozen' || state === 'staged' || state === 'rotating') return badge(state, 'warn');
  const [worst, ...others] = healthBadge(row.health).children;
  if (worst instanceof HTMLElement && others.length)
    worst.title = others.map(({ textContent }) => textContent).join(', ');
  return worst ?? null;
}

/** @param {import('../parts/api.js').Integration[]} jobs */
function jobNames(jobs) {
  const text = jobs.map(({ name }) => name).join(', ');
  return h(
    'span',
    jobs.length ? { title: `Can use it: ${text}` } : { class: 'muted', title: 'No active integration can use it.' },
    text || 'none',
  );
}

/**
 * An expiry, with its date for the pointer if it is near or over.
 * @param {Credential} row
 */
function expiry({ expires_at: at }) {
  if (!at) return null;
  if (Date.parse(at) - Date.now() >= SOON * 86_400_000) return day(at, '');
  const text = live('relative', at, Date.parse(at) < Date.now() ? 'over' : 'soon');
  text.title = deadline(at);
  return text;
}

customElements.define('ov-credentials', Credentials);
