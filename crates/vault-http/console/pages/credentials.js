// The list of credentials.

import { call, query } from '../parts/api.js';
import { matches } from '../rules/denied.js';
import { announce, h, readdress } from '../parts/dom.js';
import { checkbox, field, form } from '../parts/forms.js';
import { checkOne } from '../parts/checking.js';
import { healthBadge } from '../parts/health.js';
import { Page, badge, confirm, day, live, openDialog } from '../parts/parts.js';
import { doSeveral, list, loadAll } from '../parts/list.js';
import * as session from '../parts/session.js';
import { deadline } from '../rules/times.js';

/** @typedef {import('../parts/api.js').Credential} Credential */

/** @type {Record<import('../parts/api.js').CredentialType, string>} */
export const TYPE_NAMES = {
  s3: 'S3 bucket',
  azure_identity: 'Azure identity',
  gcs: 'Google Cloud Storage',
  'direct-link': 'Direct link',
  's3-federated': 'S3 bucket, keyless',
  'azure-federated': 'Azure container, keyless',
  'gcs-federated': 'Google Cloud Storage, keyless',
};

/**
 * Whether credentials of a type contain no secret.
 * @param {import('../parts/api.js').CredentialType} type
 */
export const isKeyless = (type) => type.endsWith('-federated');

/** @type {[string, string][]} */
const TYPES = [['', 'All types'], ...Object.entries(TYPE_NAMES)];
/** @type {[string, string][]} */
const HEALTH = [
  ['', 'Any health'],
  ['failing', 'Failing'],
  ['expired', 'Expired'],
  ['expiring', 'Expiring'],
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
/** Views of the list: the text, the filters, and the order. @type {[string, string, string?][]} */
const VIEWS = [
  ['All', ''],
  ['Expiring', 'within=30', 'Expires'],
  ['Failing', 'health=failing'],
  ['Unused', 'use=unused', 'Last used'],
  ['Never checked', 'health=unchecked'],
  ['In rotation', 'use=rotation'],
];
/** The order of the states, the most urgent first. */
const STATES = ['damaged', 'expired', 'failing', 'expiring', 'frozen', 'staged', 'rotating', 'unchecked', 'healthy'];
/** After how many days without use a credential counts as unused. */
export const UNUSED_DAYS = 90;
/** How many credentials the list contains. The server searches further ones. */
const LOADED = 5000;
/** Within how many days an expiry is marked. */
const SOON = 30;
/** Labels that a row shows. */
const LABELS = 1;

/**
 * Where a credential leads, in a few words.
 * @param {Credential} credential
 */
export function place({ information = {} }) {
  if (Array.isArray(information.bucket)) return `${information.bucket[0]} + ${information.bucket.length - 1}`;
  const text =
    information.bucket ??
    information.host ??
    [information.account_name, information.container].filter(Boolean).join(' / ');
  return String(text || information.tenant_id || '');
}

/**
 * @param {Credential} credential
 * @param {number} [most]
 */
export function labels({ labels: all = {} }, most = Infinity) {
  const texts = Object.entries(all).map(([name, value]) => (value ? `${name}:${value}` : name));
  const more = texts.slice(most);
  return [
    ...texts.slice(0, most).map((text) => h('span', { class: 'label', translate: 'no', title: text }, text)),
    more.length > 0 &&
      h(
        'span',
        { class: 'label more', title: more.join('\n') },
        `+${more.length}`,
        h('span', { class: 'hidden' }, ' more labels'),
      ),
  ];
}

/**
 * Whether no job has used a credential for long.
 * @param {Credential} credential
 */
export function unused({ last_activated_at: used, created_at: created }) {
  return Date.now() - Date.parse(used ?? created) > UNUSED_DAYS * 86_400_000;
}

class Credentials extends Page {
  label() {
    return 'Credentials';
  }

  async content() {
    if (session.mayWrite())
      this.actions(h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'));
    const get = (/** @type {string} */ name) => this.query.get(name) ?? '';
    const [loaded, namespaces, integrations] = await Promise.all([
      loadAll('/organization-vault', LOADED),
      loadAll('/namespaces', LOADED),
      session.isAdmin() ? loadAll('/integrations') : null,
    ]);
    const active = /** @type {import('../parts/api.js').Integration[]} */ (integrations?.rows ?? []).filter(
      ({ state }) => state === 'active',
    );
    const jobs = integrations
      ? (/** @type {Credential} */ { namespace }) =>
          active.filter(({ namespaces: patterns }) => matches(patterns, namespace))
      : null;
    /** @type {Set<string>} */
    const frozen = new Set(
      /** @type {import('../parts/api.js').Namespace[]} */ (namespaces.rows)
        .filter(({ frozen }) => frozen)
        .map(({ namespace }) => namespace),
    );
    let { rows: known, partial } = /** @type {{rows: Credential[], partial: boolean}} */ (loaded);
    const names = [
      ...new Set([...known.map(({ namespace }) => namespace), ...namespaces.rows.map(({ namespace }) => namespace)]),
    ].sort();
    const pairs = [
      ...new Set(
        known.flatMap(({ labels: all = {} }) => Object.entries(all).map(([name, value]) => `${name}:${value}`)),
      ),
    ].sort();
    const options = h(
      'datalist',
      { id: 'namespaces' },
      names.slice(0, 1000).map((value) => h('option', { value })),
    );
    const label = get('label');
    /** @type {[string, string][]} */
    const labelOptions = [
      ['', 'Any label'],
      ...[...new Set([...pairs, ...(label ? [label] : [])])].map(
        (pair) => /** @type {[string, string]} */ ([pair, pair]),
      ),
    ];
    const all = {
      namespace: field({
        label: 'Namespace',
        pointer: '/namespace',
        value: get('namespace'),
        placeholder: 'any part',
        list: 'namespaces',
        type: 'search',
      }),
      type: field({ label: 'Type', pointer: '/type', options: TYPES, value: get('type') }),
      label: field({ label: 'Label', pointer: '/label', options: labelOptions, value: label }),
      health: field({ label: 'Health', pointer: '/health', options: HEALTH, value: get('health') }),
      within: field({ label: 'Expires', pointer: '/within', options: EXPIRY, value: get('within') }),
      use: field({ label: 'Use', pointer: '/use', options: USE, value: get('use') }),
    };
    const box = h('div');
    const clear = h('a', { class: 'button', href: '#/credentials' }, 'Clear');
    const chosen = () =>
      Object.fromEntries(Object.entries(all).map(([name, { control }]) => [name, control.value.trim()]));
    let shown = 0;
    const show = async () => {
      shown += 1;
      const mine = shown;
      const filters = chosen();
      clear.hidden = !Object.values(filters).some(Boolean);
      mark();
      let rows = known;
      let more = partial;
      if (partial && !clear.hidden) {
        // Not everything is here: the server looks through the rest.
        const before = filters.within
          ? new Date(Date.now() + Number(filters.within) * 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z')
          : '';
        const whole = names.includes(filters.namespace ?? '');
        const found = await loadAll(
          `/organization-vault${query({ namespace: whole ? filters.namespace : '', type: filters.type, label: filters.label, health: filters.health, expires_before: before })}`,
        );
        if (mine !== shown) return;
        [rows, more] = [found.rows, found.partial];
      }
      rows = rows.filter((row) => fits(row, filters));
      const empty = !clear.hidden
        ? 'No credential matches these filters.'
        : session.mayWrite()
          ? 'No credentials yet. Add the first one: your jobs can use its secrets, which are never shown again.'
          : 'No credentials yet.';
      box.replaceChildren(this.#list(rows, more, empty, frozen, jobs));
    };
    const change = () => {
      const now = new URLSearchParams(location.hash.split('?')[1]);
      readdress(`#/credentials${query({ ...chosen(), sort: now.get('sort'), down: now.get('down') })}`);
      void show().then(() =>
        announce(box.querySelector('.total')?.textContent || 'No credential matches these filters.'),
      );
    };
    for (const { row } of Object.values(all)) row.querySelector('.optional')?.remove();
    const { namespace: _, ...others } = all;
    const used = () => Object.values(others).filter(({ control }) => control.value).length;
    const name = h('summary', null, 'Filters');
    const more = h(
      'details',
      { class: 'more-filters', open: get('label') !== '' || get('type') !== '' },
      name,
      h(
        'div',
        { class: 'filters' },
        Object.values(others).map(({ row }) => row),
      ),
    );
    const views = h('nav', { class: 'presets', 'aria-label': 'Views' });
    const mark = () => {
      name.textContent = used() ? `Filters (${used()})` : 'Filters';
      const filters = Object.entries(chosen())
        .filter(([, value]) => value)
        .map(([key, value]) => `${key}=${value}`)
        .join('&');
      views.replaceChildren(
        ...VIEWS.map(([text, view, sort]) =>
          h(
            'a',
            {
              href: `#/credentials${view ? `?${view}${sort ? `&sort=${sort}` : ''}` : ''}`,
              'aria-current': view === filters ? 'true' : null,
            },
            text,
          ),
        ),
      );
    };
    const search = form({
      fields: () => [],
      content: [all.namespace.row, more],
      submit: 'Filter',
      busy: 'Filter',
      send: async () => change(),
      buttons: [clear],
    });
    // Rebuilding the list at each key would be slow.
    let soon = 0;
    search.addEventListener('input', () => {
      clearTimeout(soon);
      soon = setTimeout(change, 120);
    });
    search.querySelector('[type="submit"]')?.toggleAttribute('hidden', true); // the list follows typed text
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Credentials');
    await show();
    return [views, search, options, box];
  }

  /**
   * @param {Credential[]} rows
   * @param {boolean} partial
   * @param {string} empty
   * @param {Set<string>} frozen
   * @param {((row: Credential) => import('../parts/api.js').Integration[]) | null} jobs the integrations that can use a credential, for admins
   */
  #list(rows, partial, empty, frozen, jobs) {
    const name = (/** @type {Credential} */ row) => row.namespace;
    /** @type {[string, (rows: Credential[]) => void][]} */
    const several = session.mayWrite()
      ? [
          ['Label', (chosen) => this.#label(chosen)],
          [
            'Check',
            (chosen) =>
              void doSeveral({
                heading: 'Check',
                rows: chosen,
                name,
                done: () => void this.refresh(),
                act: ({ id }) => checkOne(id),
              }),
          ],
          ...(session.isAdmin()
            ? [/** @type {[string, (rows: Credential[]) => void]} */ (['Freeze', (chosen) => this.#freeze(chosen)])]
            : []),
        ]
      : [];
    return list({
      caption: 'Credentials',
      noun: 'credential',
      sort: this.query.get('sort') ?? '',
      empty,
      rows,
      partial,
      file: 'credentials',
      rowName: (row) => `${row.namespace} ${TYPE_NAMES[row.type]}`,
      several,
      dense: true,
      columns: [
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
        {
          heading: 'Expires',
          style: 'when',
          cell: ({ expires_at: at }) =>
            !at ? null : Date.parse(at) - Date.now() < SOON * 86_400_000 ? expiry(at) : day(at, ''),
          value: ({ expires_at: at }) => at,
        },
        {
          heading: 'Last used',
          style: 'when',
          cell: ({ last_activated_at: at }) => (at ? live('relative', at) : day(at, 'never')),
          value: ({ last_activated_at: at }) => at,
        },
        ...(jobs
          ? [
              {
                heading: 'Allowed jobs',
                cell: (/** @type {Credential} */ row) => jobNames(jobs(row)),
                value: (/** @type {Credential} */ row) =>
                  jobs(row)
                    .map(({ name: one }) => one)
                    .join(', '),
              },
            ]
          : []),
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
          cell: (row) => labels(row, LABELS),
          value: ({ labels: all = {} }) =>
            Object.entries(all)
              .map(([label, value]) => `${label}:${value}`)
              .join(' '),
        },
      ],
    });
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
    confirm({
      heading: `Freeze ${spaces.length === 1 ? spaces[0] : `${spaces.length} namespaces`}?`,
      submit: 'Freeze',
      busy: 'Freezing…',
      text: [
        'A whole namespace is frozen, with all credentials in it. All activations of it are refused until it is thawed: jobs that use it fail.',
        h(
          'ul',
          null,
          spaces.map((space) => h('li', null, space)),
        ),
      ],
      act: async () => {
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
      },
    });
  }
}

/**
 * The most urgent state of a credential.
 * @param {Credential} row
 * @param {Set<string>} frozen namespaces
 */
function stateOf(
  { damaged, health: { state }, namespace, staged_version: staged, previous_version: previous },
  frozen,
) {
  if (damaged) return 'damaged';
  if (state === 'expired' || state === 'failing' || state === 'expiring') return state;
  return frozen.has(namespace) ? 'frozen' : staged ? 'staged' : previous ? 'rotating' : state;
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
 * An expiry that is near or over, with its date for the pointer.
 * @param {string} at
 */
function expiry(at) {
  const text = live('relative', at, Date.parse(at) < Date.now() ? 'over' : 'soon');
  text.title = deadline(at);
  return text;
}

/**
 * Whether a credential matches the filters.
 * @param {Credential} row
 * @param {Record<string, string>} filters
 */
function fits(row, { namespace = '', type, label, health, within, use }) {
  const [name = '', ...value] = (label ?? '').split(':');
  return (
    row.namespace.toLowerCase().includes(namespace.toLowerCase()) &&
    (!type || row.type === type) &&
    (!label || row.labels?.[name] === value.join(':')) &&
    (!health || row.health.state === health) &&
    (!within ||
      (row.expires_at !== undefined && Date.parse(row.expires_at) < Date.now() + Number(within) * 86_400_000)) &&
    (use !== 'unused' || unused(row)) &&
    (use !== 'rotation' || row.staged_version !== undefined || row.previous_version !== undefined)
  );
}

/**
 * One credential, and its entity tag.
 * @param {string} id
 */
export async function load(id) {
  const { body, etag } = await call('GET', `/organization-vault/${id}`);
  return { credential: /** @type {Credential} */ (body), etag: etag ?? '' };
}

customElements.define('ov-credentials', Credentials);
