// The audit log of the organization.

import { query } from '../parts/api.js';
import { button, go, h } from '../parts/dom.js';
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
    const names = await Names.load();
    const wanted = query({ ...this.#wanted(), limit: '100' });
    return [
      this.#presets(),
      this.#search(names),
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
            copyButton(location.href, 'link to these filters', 'Copy link'),
            button('Print', () => print(), { class: 'quiet' }),
            ['CSV', 'JSON'].map((kind) =>
              button(`↓ ${kind}`, () => this.#export(kind, names), {
                class: 'quiet',
                'aria-label': `Export as ${kind}`,
              }),
            ),
          ),
        ),
        await paged(`/audit${wanted}`, (rows) => this.#table(rows, names), 'entry'),
      ),
    ];
  }

  /** @param {string} name of a parameter of the address */
  #get(name) {
    return this.query.get(name) ?? '';
  }

  /** The parameters of the request. */
  #wanted() {
    const [action, actor] = [this.#get('action'), this.#get('actor')];
    const preset = PRESETS.find(([name]) => name === action)?.[2];
    return {
      since: this.#get('since'),
      until: this.#get('until'),
      actor,
      subject: this.#get('subject'),
      namespace: this.#get('namespace'),
      reads: this.#get('reads') || action ? '' : 'false',
      ...(preset ?? { action }),
      ...(preset && actor ? { actor } : {}),
    };
  }

  /**
   * Whether an entry says something that no other entry of the same act says.
   * @param {AuditEntry} entry
   */
  #isTold({ action }) {
    const wanted = this.#get('action');
    return action === wanted || (!STARTS.has(action) && !(wanted === 'changes' && NO_CHANGE.test(action)));
  }

  #presets() {
    return h(
      'nav',
      { class: 'presets', 'aria-label': 'Questions' },
      [['', 'Everything'], ...PRESETS].map(([name, text]) => {
        const href = `#/audit${query({ action: String(name) })}`;
        return h('a', { href, 'aria-current': this.#get('action') === name ? 'true' : null }, String(text));
      }),
    );
  }

  /**
   * The filters.
   * @param {Names} names
   */
  #fields(names) {
    const { actors, actions, subjects } = choicesOf(names);
    const about = this.#get('namespace') ? `namespace ${this.#get('namespace')}` : this.#get('subject');
    const selection = (
      /** @type {string} */ label,
      /** @type {string} */ name,
      /** @type {string} */ value,
      /** @type {Groups} */ groups,
      /** @type {Choice[]} */ options,
    ) => field({ label, pointer: `/${name}`, value, groups, options: including(value, groups, options, names) });
    const date = (/** @type {string} */ label, /** @type {string} */ name, /** @type {string} */ time) =>
      field({
        label,
        pointer: `/${name}`,
        type: 'datetime-local',
        value: writeTime(this.#get(name) || undefined),
        parse: (text) => readTime(text, time),
      });
    return {
      actor: selection('Who', 'actor', this.#get('actor'), actors, KINDS),
      action: selection('Did what', 'action', this.#get('action'), actions, [
        ['', 'Anything'],
        ...PRESETS.map(([name, text]) => /** @type {Choice} */ ([name, text])),
      ]),
      subject: selection('About', 'subject', about, subjects, [['', 'Anything']]),
      since: date('Since', 'since', '00:00'),
      until: date('Until', 'until', '23:59:59.999'),
    };
  }

  /** @param {Names} names */
  #search(names) {
    const all = this.#fields(names);
    const reads = checkbox('Show reads', { checked: Boolean(this.#get('reads')) });
    for (const { row } of Object.values(all)) row.querySelector('.optional')?.remove();
    const send = async () => {
      const { subject, ...others } = Object.fromEntries(Object.entries(all).map(([name, { read }]) => [name, read()]));
      const [, namespace] = /^namespace (.+)$/.exec(subject ?? '') ?? [];
      const about = namespace ? { namespace } : { subject };
      const hash = `#/audit${query({ ...others, ...about, reads: reads.control.checked ? 'yes' : '' })}`;
      if (location.hash === hash) await this.refresh();
      else go(hash);
    };
    const span = (/** @type {number} */ days) => {
      all.since.write(writeTime(new Date(Date.now() - days * 86_400_000).toISOString()));
      all.until.write('');
      return send();
    };
    const search = form({
      fields: () => Object.values(all),
      content: [...Object.values(all).map(({ row }) => row), reads.row],
      submit: 'Filter',
      busy: 'Filter',
      send,
      buttons: [
        ...SPANS.map(([text, days]) => button(text, () => span(days), { class: 'quiet' })),
        [...this.query.values()].some(Boolean) && h('a', { class: 'button', href: '#/audit' }, 'Clear'),
      ],
    });
    search.classList.add('filters');
    search.setAttribute('role', 'search');
    search.setAttribute('aria-label', 'Audit');
    return search;
  }

  /**
   * @param {AuditEntry[]} rows
   * @param {Names} names
   */
  #table(rows, names) {
    // The end of a run says little beside its start, and there are as many.
    const ends = this.#get('action') !== '' || this.#get('subject') !== '';
    const listed = rows.filter((entry) => this.#isTold(entry) && (ends || entry.action !== 'activation.ended'));
    const what = (/** @type {AuditEntry} */ entry) =>
      h(
        'span',
        { class: 'marked' },
        h('span', { class: `dot ${mark(entry.action)}`, 'aria-hidden': 'true' }),
        h('span', null, sentence(entry, names)),
      );
    return h(
      'div',
      null,
      table(
        'Audit',
        [
          { heading: 'When', cell: ({ entry }) => timeOfDay(entry.at) },
          { heading: 'What', cell: ({ entry }) => what(entry) },
          { heading: 'From', cell: ({ entry }) => entry.network ?? null },
          {
            heading: '(Entry)',
            cell: ({ entry, all }) => {
              const name = { class: 'quiet', 'aria-label': `The entry of ${entry.at}` };
              return h(
                'div',
                { class: 'buttons' },
                button('Entry', () => raw(all), name),
              );
            },
          },
        ],
        withoutRepetitions(listed),
        [...this.query.values()].some(Boolean) ? 'No entry matches these filters.' : 'No entries yet.',
        undefined,
        ({ entry }) => dayHeading(entry.at),
      ),
    );
  }

  /**
   * @param {string} kind
   * @param {Names} names
   */
  async #export(kind, names) {
    /** @type {{rows: AuditEntry[], partial: boolean}} */
    const { rows, partial } = await loadAll(`/audit${query(this.#wanted())}`, EXPORTED);
    const told = rows.filter((entry) => this.#isTold(entry));
    save('audit', kind, COLUMNS(names), told);
    const most = EXPORTED.toLocaleString('en');
    if (partial)
      this.say(
        `The file contains the newest ${most} entries of these filters. Choose a shorter time for the others.`,
        'warn',
      );
  }
}

/**
 * @typedef {[string, string]} Choice
 * @typedef {[string, Choice[]][]} Groups
 */

/**
 * The users, integrations, credentials and actions by which entries are filtered.
 * @param {Names} names
 */
function choicesOf(names) {
  const users = names.list('/accounts').map(({ id, email }) => /** @type {Choice} */ ([id, email]));
  const programs = names.list('/integrations').map(({ id, name }) => /** @type {Choice} */ ([id, name]));
  const credentials = names
    .list('/organization-vault')
    .map(({ id, namespace, type }) => /** @type {Choice} */ ([id, `${namespace} (${type})`]));
  /** @type {Groups} */
  const actions = GROUPS.map(([, name]) => [name, []]);
  for (const action of Object.keys(ACTIONS).filter((one) => !ELSEWHERE.test(one)))
    actions[GROUPS.findIndex(([start]) => start.test(action))]?.[1].push([action, actionText(action)]);
  return {
    actors: /** @type {Groups} */ ([
      ['Users', users],
      ['Integrations', programs],
    ]),
    actions,
    subjects: /** @type {Groups} */ ([
      ['Credentials', credentials],
      ['Integrations', programs],
      ['Users', users],
    ]),
  };
}

/**
 * The options, with the chosen value if no other list has it.
 * @param {string} value
 * @param {Groups} groups
 * @param {Choice[]} options
 * @param {Names} names
 */
function including(value, groups, options, names) {
  const known = [...options, ...groups.flatMap(([, choices]) => choices)].some(([id]) => id === value);
  return !value || known
    ? options
    : [...options, /** @type {Choice} */ ([value, names.of(value.split(':').at(-1)) ?? value])];
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
