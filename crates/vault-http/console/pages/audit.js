// The audit log of the organization.

import { query } from '../parts/api.js';
import { go, h } from '../parts/dom.js';
import { checkbox, field, form, readTime, writeTime } from '../parts/forms.js';
import { loadAll, save } from '../parts/list.js';
import { DENIED } from '../rules/denied.js';
import { Page, dayHeading, openDialog, timeOfDay } from '../parts/parts.js';
import { paged, table } from '../parts/blocks.js';
import { copyButton } from '../parts/copy.js';
import { ZONE } from '../rules/times.js';
import { ACTIONS, GROUPS, Names, actionText, sentence, withoutRepetitions } from '../parts/words.js';

/** @typedef {import('../parts/api.js').AuditEntry} AuditEntry */

/** Actions of operators that no organization's audit log contains. */
const ELSEWHERE = /^(instance|database|issuer)\./;
/** The start of a use, which a later entry repeats. */
const STARTS = new Set(['activation.started', 'activation.renewal-started']);
/**
 * Presets of the filters: the name in the address, the text, and the parameters of the request. Unlike the names of actions,
 * theirs have no dot.
 * @type {[string, string, Record<string, string | string[]>][]}
 */
const PRESETS = [
  ['used', 'Who used…', { action: ['namespace.activated', 'activation.renewed'] }],
  ['denied', 'Denied jobs', { action: Object.keys(DENIED) }],
  [
    'sign-ins',
    'Failed sign-ins',
    { action: ['login.refused', 'login.passcode-refused', 'login.throttled', 'login.locked'] },
  ],
  ['changes', 'Changes by people', { actor: 'account', reads: 'false' }],
];
/** What people do that changes nothing. */
const NO_CHANGE = /^(login|session)\./;
/** @type {[string, string][]} */
const KINDS = [
  ['', 'Anyone'],
  ['account', 'All users'],
  ['integration', 'All integrations'],
  ['operator', 'Operators'],
  ['system', 'The system'],
  ['unknown', 'Unknown clients'],
];
/** @type {[string, number][]} */
const SPANS = [
  ['Last 24 hours', 1],
  ['Last 7 days', 7],
  ['Last 30 days', 30],
];
/** Entries that an export contains at most. */
const EXPORTED = 5000;

class Audit extends Page {
  label() {
    return 'Audit';
  }

  async content() {
    const get = (/** @type {string} */ name) => this.query.get(name) ?? '';
    const names = await Names.load();
    const [accounts = [], integrations = [], credentials = []] = [
      '/accounts',
      '/integrations',
      '/organization-vault',
    ].map((path) => names.list(path));
    const choice = (/** @type {string} */ id, /** @type {string} */ name) =>
      /** @type {[string, string]} */ ([id, name]);
    /** @param {string} value @param {[string, [string, string][]][]} groups @param {[string, string][]} options */
    const including = (value, groups, options) =>
      !value || [...options, ...groups.flatMap(([, choices]) => choices)].some(([id]) => id === value)
        ? options
        : [...options, choice(value, names.of(value.split(':').at(-1)) ?? value)];
    const users = accounts.map((/** @type {any} */ { id, email }) => choice(id, email));
    const programs = integrations.map((/** @type {any} */ { id, name }) => choice(id, name));
    /** @type {[string, [string, string][]][]} */
    const actors = [
      ['Users', users],
      ['Integrations', programs],
    ];
    /** @type {[string, [string, string][]][]} */
    const subjects = [
      [
        'Credentials',
        credentials.map((/** @type {any} */ { id, namespace, type }) => choice(id, `${namespace} (${type})`)),
      ],
      ['Integrations', programs],
      ['Users', users],
    ];
    /** @type {[string, [string, string][]][]} */
    const actions = GROUPS.map(([, name]) => [name, []]);
    for (const action of Object.keys(ACTIONS)) {
      if (!ELSEWHERE.test(action))
        actions[GROUPS.findIndex(([start]) => start.test(action))]?.[1].push(choice(action, actionText(action)));
    }
    const about = get('namespace') ? `namespace ${get('namespace')}` : get('subject');
    const all = {
      actor: field({
        label: 'Who',
        pointer: '/actor',
        options: including(get('actor'), actors, KINDS),
        groups: actors,
        value: get('actor'),
      }),
      action: field({
        label: 'Did what',
        pointer: '/action',
        options: including(get('action'), actions, [
          ['', 'Anything'],
          ...PRESETS.map(([name, text]) => choice(name, text)),
        ]),
        groups: actions,
        value: get('action'),
      }),
      subject: field({
        label: 'About',
        pointer: '/subject',
        options: including(about, subjects, [['', 'Anything']]),
        groups: subjects,
        value: about,
      }),
      since: field({
        label: 'Since',
        pointer: '/since',
        type: 'datetime-local',
        value: writeTime(get('since') || undefined),
        parse: (text) => readTime(text, '00:00'),
      }),
      until: field({
        label: 'Until',
        pointer: '/until',
        type: 'datetime-local',
        value: writeTime(get('until') || undefined),
        parse: (text) => readTime(text, '23:59:59.999'),
      }),
    };
    const reads = checkbox('Show reads', { checked: Boolean(get('reads')) });
    for (const { row } of Object.values(all)) row.querySelector('.optional')?.remove();
    const filtered = [...this.query.values()].some(Boolean);
    const send = async () => {
      const { subject, ...others } = Object.fromEntries(Object.entries(all).map(([name, { read }]) => [name, read()]));
      const [, namespace] = /^namespace (.+)$/.exec(subject ?? '') ?? [];
      const hash = `#/audit${query({ ...others, ...(namespace ? { namespace } : { subject }), reads: reads.control.checked ? 'yes' : '' })}`;
      if (location.hash === hash) await this.refresh();
      else go(hash);
    };
    const search = form({
      fields: () => Object.values(all),
      content: [...Object.values(all).map(({ row }) => row), reads.row],
      submit: 'Filter',
      busy: 'Filter',
      send,
      buttons: [
        ...SPANS.map(([text, days]) =>
          h(
            'button',
            {
              type: 'button',
              class: 'quiet',
              onclick: () => {
                all.since.write(writeTime(new Date(Date.now() - days * 86_400_000).toISOString()));
                all.until.write('');
                void send();
              },
            },
            text,
          ),
        ),
        filtered && h('a', { class: 'button', href: '#/audit' }, 'Clear'),
      ],
    });
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Audit');
    const shown = (/** @type {AuditEntry} */ { action }) =>
      action === get('action') || (!STARTS.has(action) && !(get('action') === 'changes' && NO_CHANGE.test(action)));
    /** @param {AuditEntry[]} rows */
    const view = (rows) => {
      const read = rows.filter(shown);
      const listed = withoutRepetitions(read);
      return h(
        'div',
        null,
        table(
          'Audit',
          [
            ['When', ({ entry }) => timeOfDay(entry.at)],
            [
              'What',
              ({ entry }) =>
                h(
                  'span',
                  { class: 'marked' },
                  h('span', { class: `dot ${mark(entry.action)}`, 'aria-hidden': 'true' }),
                  h('span', null, sentence(entry, names)),
                ),
            ],
            ['From', ({ entry }) => entry.network ?? null],
            [
              '(Entry)',
              ({ entry, all: each }) =>
                h(
                  'div',
                  { class: 'buttons' },
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'quiet',
                      'aria-label': `The entry of ${entry.at}`,
                      onclick: () => raw(each),
                    },
                    'Entry',
                  ),
                ),
            ],
          ],
          listed,
          filtered ? 'No entry matches these filters.' : 'No entries yet.',
          undefined,
          ({ entry }) => dayHeading(entry.at),
        ),
      );
    };
    const preset = PRESETS.find(([name]) => name === get('action'))?.[2];
    const wanted = {
      since: get('since'),
      until: get('until'),
      actor: get('actor'),
      subject: get('subject'),
      namespace: get('namespace'),
      reads: get('reads') || get('action') ? '' : 'false',
      ...(preset ?? { action: get('action') }),
      ...(preset && get('actor') ? { actor: get('actor') } : {}),
    };
    const exports = ['CSV', 'JSON'].map((kind) =>
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-label': `Export as ${kind}`,
          onclick: async () => {
            const { rows, partial } = /** @type {{rows: AuditEntry[], partial: boolean}} */ (
              await loadAll(`/audit${query(wanted)}`, EXPORTED)
            );
            save('audit', kind, COLUMNS(names), rows.filter(shown));
            if (partial)
              this.say(
                `The file contains the newest ${EXPORTED.toLocaleString('en')} entries of these filters. Choose a shorter time for the others.`,
                'warn',
              );
          },
        },
        `↓ ${kind}`,
      ),
    );
    const presets = h(
      'nav',
      { class: 'presets', 'aria-label': 'Questions' },
      [['', 'Everything'], ...PRESETS].map(([name, text]) =>
        h(
          'a',
          { href: `#/audit${query({ action: String(name) })}`, 'aria-current': get('action') === name ? 'true' : null },
          String(text),
        ),
      ),
    );
    const link = copyButton(location.href, 'link to these filters', 'Copy link');
    return [
      presets,
      search,
      h(
        'div',
        null,
        h(
          'div',
          { class: 'list-head' },
          h('p', { class: 'muted' }, `Times in ${ZONE}`),
          h(
            'div',
            { class: 'buttons' },
            link,
            h('button', { type: 'button', class: 'quiet', onclick: () => print() }, 'Print'),
            exports,
          ),
        ),
        await paged(`/audit${query({ ...wanted, limit: '100' })}`, view, 'entry'),
      ),
    ];
  }
}

/**
 * The colour of an action: denied, used by a job, destructive, or other.
 * @param {string} action
 */
function mark(action) {
  if (/refused|failed|failing|login\.(throttled|locked)/.test(action)) return 'bad';
  if (/^(namespace\.activated|activation\.renewed)/.test(action)) return 'good';
  return /deleted|destroyed|disabled|frozen|removed|distrusted|ended/.test(action) ? 'warn' : '';
}

/**
 * The columns of an exported file.
 * @param {Names} names
 * @returns {import('../parts/list.js').Column<AuditEntry>[]}
 */
const COLUMNS = (names) => [
  { heading: 'At', cell: () => null, value: ({ at }) => at },
  {
    heading: 'Actor',
    cell: () => null,
    value: ({ actor, account, integration }) => names.of(account ?? integration) ?? account ?? integration ?? actor,
  },
  { heading: 'Action', cell: () => null, value: ({ action }) => action },
  { heading: 'Subject', cell: () => null, value: ({ subject }) => subject },
  { heading: 'Name', cell: () => null, value: ({ subject }) => names.of(subject.split(':')[1]) ?? '' },
  { heading: 'Namespace', cell: () => null, value: ({ namespace = '' }) => namespace },
  { heading: 'Count', cell: () => null, value: ({ count: times = 1 }) => times },
  { heading: 'Purpose', cell: () => null, value: ({ purpose = '' }) => purpose },
  { heading: 'Network', cell: () => null, value: ({ network = '' }) => network },
  { heading: 'Entry', cell: () => null, value: ({ id }) => id },
];

/**
 * Shows entries as the HTTP API returns them.
 * @param {AuditEntry[]} entries
 */
function raw(entries) {
  openDialog('Audit entry', (close) => [
    h(
      'div',
      { class: 'page-body' },
      h('pre', { translate: 'no', tabindex: '0' }, JSON.stringify(entries.length > 1 ? entries : entries[0], null, 2)),
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: close }, 'Close')),
    ),
  ]);
}

customElements.define('ov-audit', Audit);
