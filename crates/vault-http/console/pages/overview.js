// What needs attention, and the latest activations; for a new organization, the steps to its first job.

import { call, query } from '../parts/api.js';
import { CHART_DAYS, loadUsage, usageChart } from '../parts/chart.js';
import { freshId, h, parted } from '../parts/dom.js';
import { count } from '../parts/forms.js';
import { Page, badge, live } from '../parts/parts.js';
import { section } from '../parts/blocks.js';
import { loadAll } from '../parts/list.js';
import { DENIED, deniedIn, deniedSince, matches } from '../rules/denied.js';
import { isUnreachable, reasonText } from '../parts/health.js';
import { UNUSED_DAYS, isKeyless, unused } from './credentials.js';
import { noticeText } from './account.js';
import { holders, rhythm, startOfDay } from '../rules/usage.js';
import * as session from '../parts/session.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Integration} Integration
 * @typedef {import('../parts/api.js').Account} Account
 * @typedef {import('../parts/api.js').NamespaceUsage} NamespaceUsage
 * @typedef {import('../parts/api.js').NamespaceUse} NamespaceUse
 * @typedef {import('../rules/denied.js').Denial} Denial
 * @typedef {object} Concern
 * @property {Group} group
 * @property {number} at when it happens or happened
 * @property {import('../parts/dom.js').Child[]} text
 * @property {string} [by] who uses it
 * @property {[string, string][]} acts names and addresses of what can be done
 * @typedef {'broken' | 'week' | 'later'} Group
 */

const DAY = 86_400_000;
/** How far ahead an expiry is listed, in days. */
const AHEAD = 30;
/** How far ahead it is urgent, in days. */
const WEEK = 7;
/** After how many days a staged version counts as forgotten. */
const FORGOTTEN = 7;
/** Credentials with the same problem that are listed; the others are behind a link. */
const EACH = 5;
/** Credentials that are searched. */
const SEARCHED = 5000;
/** Integrations that are named as users of a credential. */
const USERS = 2;

/** @type {[Group, string, string][]} */
const GROUPS = [
  ['broken', 'Broken now', 'bad'],
  ['week', 'This week', 'warn'],
  ['later', 'Later', 'plain'],
];

/** @param {number} at */
const soonOrLater = (at) => (at - Date.now() < WEEK * DAY ? 'week' : 'later');

class Overview extends Page {
  label() {
    return 'Overview';
  }

  async content() {
    const admin = session.isAdmin();
    const [credentials, integrations, accounts, namespaces, receivers, usage, { body: own }] = await Promise.all([
      /** @type {Promise<{rows: Credential[], partial: boolean}>} */ (loadAll('/organization-vault', SEARCHED)),
      admin ? /** @type {Promise<{rows: Integration[], partial: boolean}>} */ (loadAll('/integrations')) : null,
      admin ? /** @type {Promise<{rows: Account[], partial: boolean}>} */ (loadAll('/accounts')) : null,
      /** @type {Promise<{rows: import('../parts/api.js').Namespace[], partial: boolean}>} */ (
        loadAll('/namespaces', SEARCHED)
      ),
      admin
        ? call('GET', '/receivers').then(({ body }) => /** @type {import('../parts/api.js').Receiver[]} */ (body))
        : [],
      admin ? loadUsage() : null,
      call('GET', '/account'),
    ]);
    session.update(own);
    const looked = credentials.partial ? await urgent(credentials.rows) : credentials.rows;
    if (session.mayWrite())
      this.actions(h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'));
    const used = credentials.rows.some(({ last_activated_at: at }) => at);
    const isNew =
      session.mayWrite() &&
      !used &&
      (!credentials.rows.length || (admin && !integrations?.rows.length) || (usage !== null && !usage.uses.length));
    const emails = new Map((accounts?.rows ?? []).map(({ id, email }) => [id, email]));
    const uses = usage?.uses ?? [];
    const name = (/** @type {string} */ id) => integrations?.rows.find(({ id: one }) => one === id)?.name;
    const users = admin
      ? (/** @type {string} */ namespace) =>
          usedBy(
            uses.filter((use) => use.namespace === namespace),
            name,
          )
      : () => '';
    const concerns = [
      ...ofCredentials(looked, users),
      ...ofIntegrations(integrations?.rows ?? []),
      ...ofPeople(accounts?.rows ?? []),
      ...ofReceivers(receivers),
      ...(usage ? ofDenials(usage, integrations?.rows ?? [], namespaces.rows) : []),
      ...(await ofRotations(looked, users)),
      ...ofSilence(uses, name),
      ...namespaces.rows
        .filter(({ frozen }) => frozen)
        .map(({ namespace, frozen_at: at = '' }) =>
          concern(
            'later',
            Date.parse(at),
            [
              link(namespace, `#/credentials${query({ namespace })}`),
              ' was frozen ',
              live('relative', at),
              '. Its jobs are denied.',
            ],
            admin ? [['Thaw', `#/namespaces${query({ namespace })}`]] : [],
            users(namespace),
          ),
        ),
      ...ofNotices(own.notices, emails),
    ];
    return [
      isNew && this.#steps(credentials.rows, integrations?.rows ?? []),
      attention(concerns, credentials.rows, credentials.partial),
      this.#numbers(credentials, integrations, accounts),
      usage && usage.uses.length + usage.denials.length > 0 && picture(usage),
    ];
  }

  /**
   * The way to the first job.
   * @param {Credential[]} credentials
   * @param {Integration[]} integrations
   */
  #steps(credentials, integrations) {
    const first = credentials[0];
    const token = integrations[0];
    /** @type {[boolean, string, import('../parts/dom.js').Child[]][]} */
    const steps = [
      [
        Boolean(first),
        'Save a credential',
        [
          first ? `${first.namespace} is saved.` : 'Paste the key that a job has now.',
          ' ',
          !first && h('a', { href: '#/credentials/new' }, 'Add a credential'),
        ],
      ],
      [
        Boolean(token),
        'Create an integration for the job',
        session.isAdmin()
          ? [
              token
                ? `${token.name} is created.`
                : 'It gets a token that lets it use the credentials of its namespaces.',
              ' ',
              !token &&
                h(
                  'a',
                  { href: `#/integrations${query({ create: first?.namespace ?? 'yes' })}` },
                  'Create an integration',
                ),
            ]
          : ['An admin of your organization does this.'],
      ],
      [
        false,
        'Run the job',
        [
          'The commands to paste are shown with the token',
          token && session.isAdmin()
            ? [', and under ', h('a', { href: `#/integrations/${token.id}?tab=connect` }, token.name)]
            : [],
          '. Its first use appears here.',
        ].flat(),
      ],
    ];
    const now = steps.findIndex(([done]) => !done);
    return section(
      'Three steps to the first job',
      h(
        'ol',
        { class: 'first-steps' },
        steps.map(([done, name, text], index) =>
          h(
            'li',
            { 'aria-current': index === now ? 'step' : null, class: done ? 'done' : null },
            h('strong', null, name, done && h('span', { class: 'hidden' }, ' (done)')),
            h('p', { class: 'hint' }, text),
          ),
        ),
      ),
    );
  }

  /**
   * @param {{rows: Credential[], partial: boolean}} credentials
   * @param {{rows: Integration[], partial: boolean} | null} integrations
   * @param {{rows: Account[], partial: boolean} | null} accounts
   */
  #numbers(credentials, integrations, accounts) {
    const number = (
      /** @type {{rows: unknown[], partial: boolean}} */ { rows, partial },
      /** @type {string} */ noun,
      /** @type {string} */ href,
    ) =>
      h(
        'a',
        { class: 'number', href },
        h('strong', null, rows.length.toLocaleString('en') + (partial ? '+' : '')),
        ` ${noun}${rows.length === 1 ? '' : 's'}`,
      );
    return h(
      'div',
      { class: 'numbers' },
      number(credentials, 'credential', '#/credentials'),
      integrations && number(integrations, 'integration', '#/integrations'),
      accounts && number(accounts, 'account', '#/accounts'),
    );
  }
}

/**
 * `rows`, and all others that fail or end soon, which the server looks for.
 * @param {Credential[]} rows
 */
async function urgent(rows) {
  const soon = new Date(Date.now() + AHEAD * DAY).toISOString().replace(/\.\d+Z$/, 'Z');
  const found = await Promise.all([
    loadAll(`/organization-vault${query({ health: 'failing' })}`),
    loadAll(`/organization-vault${query({ expires_before: soon })}`),
  ]);
  /** @type {Map<string, Credential>} */
  const all = new Map(
    [...rows, .../** @type {Credential[]} */ (found.flatMap(({ rows: more }) => more))].map((row) => [row.id, row]),
  );
  return [...all.values()];
}

/**
 * @param {Group} group
 * @param {number} at
 * @param {import('../parts/dom.js').Child[]} text
 * @param {[string, string][]} acts
 * @param {string} [by]
 * @returns {Concern}
 */
function concern(group, at, text, acts, by = '') {
  return { group, at, text, acts, by };
}

/**
 * Who uses a namespace: "used by payroll-export, daily 02:00".
 * @param {NamespaceUse[]} uses of that namespace
 * @param {(id: string) => string | undefined} name of an integration
 */
function usedBy(uses, name) {
  if (!uses.length) return `not used in ${CHART_DAYS} days`;
  const [most, ...others] = uses.toSorted((one, other) => other.activations - one.activations);
  const named = others.slice(0, USERS - 1).map(({ integration }) => name(integration) ?? 'a deleted integration');
  const more = others.length - named.length;
  return most
    ? `used by ${[`${name(most.integration) ?? 'a deleted integration'}, ${rhythm(most, CHART_DAYS)}`, ...named, ...(more ? [`${more} more`] : [])].join('; ')}`
    : '';
}

/**
 * Concerns in the order of their time: what broke last comes first, then what happens next. What has no time ahead comes last.
 * @param {Concern[]} concerns
 */
function sorted(concerns) {
  const now = Date.now();
  const key = (/** @type {Concern} */ { group, at }) => (group === 'broken' ? -at : at > now ? at - now : Infinity);
  return concerns.toSorted((one, other) => {
    const [a, b] = [key(one), key(other)];
    return a === b ? one.at - other.at : a - b;
  });
}

/**
 * @param {string} name
 * @param {string} href
 */
function link(name, href) {
  return h('a', { class: 'object', href, translate: 'no' }, parted(name));
}

/**
 * What needs attention, and what this page does not know.
 * @param {Concern[]} concerns
 * @param {Credential[]} rows
 * @param {boolean} partial
 */
function attention(concerns, rows, partial) {
  const unknown = [
    ['health', rows.filter(({ health }) => health.state !== 'expired' && !health.checked_at).length],
    ['expiry', rows.filter(({ type, expires_at: at }) => !at && !isKeyless(type)).length],
  ].flatMap(([what, number]) => (number ? [`${what} of ${count(Number(number), 'credential')}`] : []));
  const most = SEARCHED.toLocaleString('en');
  const limits = [
    unknown.length > 0 && `Not known: ${unknown.join(', ')}${partial ? `, among the newest ${most}` : ''}.`,
    partial && `Forgotten and unused credentials are searched among the newest ${most}.`,
  ]
    .filter(Boolean)
    .join(' ');
  const groups = GROUPS.flatMap(([group, heading, kind]) => {
    const rowsOf = sorted(concerns.filter((one) => one.group === group));
    if (!rowsOf.length) return [];
    const id = freshId();
    return [
      h(
        'h3',
        { id, class: 'group' },
        h('span', { class: `dot ${kind}`, 'aria-hidden': 'true' }),
        `${heading} `,
        badge(rowsOf.length.toLocaleString('en'), kind),
      ),
      h(
        'ul',
        { class: 'concerns', 'aria-labelledby': id },
        rowsOf.map(({ text, by, acts }) =>
          h(
            'li',
            null,
            h('span', null, text),
            h('span', { class: 'by' }, by),
            h(
              'span',
              { class: 'acts' },
              acts.map(([name, href]) => h('a', { class: 'button quiet', href }, name)),
            ),
          ),
        ),
      ),
    ];
  });
  return section(
    'Needs attention',
    ...groups,
    !concerns.length && h('p', { class: `note ${unknown.length ? '' : 'good'}` }, 'Nothing needs attention.'),
    limits && h('p', { class: 'hint' }, limits),
  );
}

/**
 * @param {Credential[]} rows
 * @param {(namespace: string) => string} users
 * @returns {Concern[]}
 */
function ofCredentials(rows, users) {
  const ends = (/** @type {Credential} */ { expires_at: at }) => (at ? Date.parse(at) : Infinity);
  const since = (/** @type {Credential} */ { health }) => Date.parse(health.since ?? health.checked_at ?? '') || 0;
  const writes = session.mayWrite();
  const [now, fails] = [Date.now(), (/** @type {Credential} */ { health }) => health.state === 'failing'];
  /**
   * Action, filter of the list of all, whether a row is of it, the problem, where to act, the group and the time.
   * @type {[string, string, (row: Credential) => boolean, (row: Credential) => import('../parts/dom.js').Child[], string, (at: number) => Group, (row: Credential) => number][]}
   */
  const kinds = [
    [
      'Replace',
      'health=expired&sort=Expires',
      (row) => ends(row) <= now,
      (row) => [' expired ', live('deadline', row.expires_at ?? ''), '.'],
      '/replace',
      () => 'broken',
      ends,
    ],
    [
      'View',
      'health=failing',
      (row) => fails(row) && !isUnreachable(row.health),
      ({ health }) => [` does not work: ${reasonText(health.reason)}.`],
      '',
      () => 'broken',
      since,
    ],
    [
      'View',
      'health=failing',
      (row) => fails(row) && isUnreachable(row.health),
      ({ health }) => [` could not be checked: ${reasonText(health.reason)}.`],
      '',
      () => 'week',
      since,
    ],
    [
      'Rotate',
      'within=7&sort=Expires',
      (row) => ends(row) > now && ends(row) < now + WEEK * DAY,
      (row) => [' expires ', live('deadline', row.expires_at ?? ''), '.'],
      '/replace',
      () => 'week',
      ends,
    ],
    [
      'Rotate',
      'within=30&sort=Expires',
      (row) => ends(row) >= now + WEEK * DAY && ends(row) < now + AHEAD * DAY,
      (row) => [' expires ', live('deadline', row.expires_at ?? ''), '.'],
      '/replace',
      () => 'later',
      ends,
    ],
    ...(writes
      ? /** @type {typeof kinds} */ ([
          [
            'Continue rotation',
            'use=rotation',
            ({ staged_version: version, updated_at: at }) => Boolean(version) && now - Date.parse(at) > FORGOTTEN * DAY,
            (row) => [
              ` has had version ${row.staged_version} staged for ${count(Math.floor((now - Date.parse(row.updated_at)) / DAY), 'day')}.`,
            ],
            '/rotate',
            () => 'later',
            ({ updated_at: at }) => Date.parse(at),
          ],
          [
            'View',
            'use=unused',
            unused,
            (row) =>
              row.last_activated_at
                ? [' was last used ', live('relative', row.last_activated_at), '.']
                : [` has not been used in ${UNUSED_DAYS} days.`],
            '',
            () => 'later',
            ({ last_activated_at: at, created_at: created }) => Date.parse(at ?? created),
          ],
        ])
      : []),
  ];
  return kinds.flatMap(([act, filter, is, text, page, group, time]) => {
    const found = rows.filter(is).toSorted((one, other) => time(one) - time(other));
    const listed = found
      .slice(0, found.length > EACH + 1 ? EACH : found.length)
      .map((row) =>
        concern(
          group(time(row)),
          time(row),
          [link(row.namespace, `#/credentials/${row.id}`), ...text(row)],
          [writes ? [act, `#/credentials/${row.id}${page}`] : ['View', `#/credentials/${row.id}`]],
          page === '' && act === 'View' && filter === 'use=unused' ? '' : users(row.namespace),
        ),
      );
    const [first] = found;
    return first && found.length > listed.length
      ? [
          ...listed,
          concern(
            group(time(first)),
            group(0) === 'broken' ? -Infinity : Infinity,
            [`${count(found.length - listed.length, 'more credential')}.`],
            [['List all', `#/credentials?${filter}`]],
          ),
        ]
      : listed;
  });
}

/**
 * Rotations whose old version is still kept, and whether jobs can still use it.
 * @param {Credential[]} rows
 * @param {(namespace: string) => string} users
 * @returns {Promise<Concern[]>}
 */
async function ofRotations(rows, users) {
  const end = (/** @type {Credential} */ { previous_version_until: until, updated_at: at }) => Date.parse(until ?? at);
  // A staged version is the next rotation, which has a separate row. An old version without a key needs no action.
  const found = rows
    .filter(
      ({ type, previous_version: old, staged_version: staged }) =>
        old && !staged && !isKeyless(type) && session.mayWrite(),
    )
    .toSorted((one, other) => end(one) - end(other));
  const listed = found.slice(0, found.length > EACH + 1 ? EACH : found.length);
  const concerns = await Promise.all(
    listed.map(async (row) => {
      const { id, namespace, version, previous_version: old, previous_version_until: until } = row;
      const { body: uses } = await call('GET', `/organization-vault/${id}/activations?limit=1000`);
      const last = holders(uses, version)
        .map((one) => one.until)
        .sort()
        .at(-1);
      const state = last
        ? [`. Jobs may use version ${old} until `, live('until', last), '.']
        : [`. No job can use version ${old} any more: disable the old key.`];
      return concern(
        'week',
        end(row),
        [
          link(namespace, `#/credentials/${id}`),
          ': rotation not finished',
          ...state,
          until ? [` Version ${old} is deleted `, live('deadline', until), '.'] : [],
        ].flat(),
        [['Continue rotation', `#/credentials/${id}/rotate`]],
        users(namespace),
      );
    }),
  );
  const more = found.length - listed.length;
  return more
    ? [
        ...concerns,
        concern(
          'week',
          Infinity,
          [`${count(more, 'more rotation')} not finished.`],
          [['List all', '#/credentials?use=rotation']],
        ),
      ]
    : concerns;
}

/**
 * Regular uses that have stopped.
 * @param {NamespaceUse[]} uses
 * @param {(id: string) => string | undefined} name of an integration
 * @returns {Concern[]}
 */
function ofSilence(uses, name) {
  return uses
    .filter((use) => use.silent && name(use.integration))
    .map((use) => {
      const last = Date.parse(use.last_activated_at);
      const days = Math.round((startOfDay(Date.now()) - startOfDay(last)) / DAY);
      return concern(
        'broken',
        last,
        [
          link(use.namespace, `#/credentials${query({ namespace: use.namespace })}`),
          `: ${rhythm(use, CHART_DAYS)} until ${new Date(last).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })}, nothing for ${count(days, 'day')}.`,
        ],
        [['View integration', `#/integrations/${use.integration}`]],
        `used by ${name(use.integration)}`,
      );
    });
}

/**
 * Denied attempts whose cause still exists.
 * @param {NamespaceUsage} usage
 * @param {Integration[]} integrations
 * @param {import('../parts/api.js').Namespace[]} namespaces
 * @returns {Concern[]}
 */
function ofDenials(usage, integrations, namespaces) {
  const since = deniedSince();
  const frozen = new Set(namespaces.filter((one) => one.frozen).map(({ namespace }) => namespace));
  const open = deniedIn(usage).filter(({ integration: id, namespace, action, last }) => {
    const integration = integrations.find(({ id: one }) => one === id);
    if (!integration || last < since) return false; // or deleted since
    if (action === 'activation.refused-outside' && namespace && matches(integration.namespaces, namespace))
      return false;
    if (action === 'activation.refused-frozen' && namespace && !frozen.has(namespace)) return false;
    return !usage.uses.some(
      (use) => use.integration === id && use.last_activated_at > last && (!namespace || use.namespace === namespace),
    );
  });
  return open.map(({ integration: id, namespace, action, count: times, last }) => {
    const name = integrations.find(({ id: one }) => one === id)?.name ?? id;
    /** @type {[string, string][]} */
    const acts = [
      ...(action === 'activation.refused-outside' && namespace
        ? [/** @type {[string, string]} */ (['Grant access', `#/integrations/${id}${query({ add: namespace })}`])]
        : []),
      ...(action === 'activation.refused-token'
        ? [/** @type {[string, string]} */ (['View integration', `#/integrations/${id}`])]
        : []),
      ['See attempts', `#/audit${query({ action, actor: id, namespace })}`],
    ];
    return concern(
      'broken',
      Date.parse(last),
      [
        link(name, `#/integrations/${id}`),
        ' was denied',
        namespace ? [' ', h('code', null, namespace)] : [],
        ` (${DENIED[action]}), ${times.toLocaleString('en')}×, last `,
        live('relative', last),
        '.',
      ].flat(),
      acts,
    );
  });
}

/**
 * @param {Integration[]} rows
 * @returns {Concern[]}
 */
function ofIntegrations(rows) {
  return rows.flatMap(({ id, name, expires_at: at, state }) => {
    const end = at && state !== 'disabled' ? Date.parse(at) : Infinity;
    if (!at || end > Date.now() + AHEAD * DAY) return [];
    const over = end <= Date.now();
    return [
      concern(
        over ? 'broken' : soonOrLater(end),
        end,
        [
          'The integration ',
          link(name, `#/integrations/${id}`),
          over ? ' expired ' : ' expires ',
          live('deadline', at),
          over ? '. Its jobs are denied.' : '. Its jobs are denied from then on.',
        ],
        [['Change expiry', `#/integrations/${id}${query({ edit: 'yes' })}`]],
      ),
    ];
  });
}

/**
 * @param {Account[]} rows
 * @returns {Concern[]}
 */
function ofPeople(rows) {
  return rows.flatMap(
    ({ email, state, locked, locked_since: since, failed_logins: failed, invitation_expires_at: at }) => {
      const who = link(email, `#/accounts${query({ email })}`);
      if (locked)
        return [
          concern(
            'broken',
            Date.parse(since ?? '') || 0,
            [who, ` is locked after ${failed ? count(failed, 'failed sign-in') : 'failed sign-ins'}.`],
            [['Unlock', `#/accounts${query({ email })}`]],
          ),
        ];
      if (state !== 'invited' && state !== 're-enrolling') return [];
      const over = at ? Date.parse(at) <= Date.now() : true;
      return [
        concern(
          'week',
          at ? Date.parse(at) : 0,
          [
            who,
            state === 'invited' ? ' has not accepted the invitation' : ' has not set up the sign-in again',
            at ? [over ? ': it expired ' : ': it expires ', live('deadline', at)] : [],
            '.',
          ].flat(),
          [[over ? 'Invite again' : 'View', `#/accounts${query({ email })}`]],
        ),
      ];
    },
  );
}

/**
 * The notices of the last days, one row for those of the same kind.
 * @param {import('../parts/api.js').Notice[]} notices newest first
 * @param {Map<string, string>} emails
 */
function ofNotices(notices, emails) {
  const lately = notices.filter(({ at }) => !at || Date.now() - Date.parse(at) < AHEAD * DAY);
  const same = (/** @type {import('../parts/api.js').Notice} */ notice) =>
    lately.filter(({ code, account }) => code === notice.code && account === notice.account);
  return lately
    .filter((notice) => same(notice)[0] === notice)
    .map((notice) =>
      concern(
        'week',
        Date.parse(notice.at ?? '') || 0,
        [noticeText(notice, emails), same(notice).length > 1 ? ` (${same(notice).length}×)` : ''],
        [['Your account', '#/account']],
      ),
    );
}

/**
 * @param {import('../parts/api.js').Receiver[]} rows
 * @returns {Concern[]}
 */
function ofReceivers(rows) {
  return rows
    .filter(({ state, last_error: error }) => state === 'failing' || (state === 'disabled' && error))
    .map(({ url, to, state }) =>
      concern(
        'broken',
        0,
        [
          'Notifications to ',
          h('strong', { translate: 'no' }, url ?? to),
          state === 'failing'
            ? ' have not been delivered for a day.'
            : ' are off: the receiver is gone, or its address has no active user.',
        ],
        [['View', '#/receivers']],
      ),
    );
}

/**
 * Activations and denied attempts by day.
 * @param {NamespaceUsage} usage
 */
function picture(usage) {
  const sum = (/** @type {number[]} */ hours) => hours.reduce((total, number) => total + number, 0);
  const latest = usage.uses
    .toSorted((one, other) => one.last_activated_at.localeCompare(other.last_activated_at))
    .at(-1);
  return section(
    `Activations of the last ${CHART_DAYS} days`,
    usageChart(usage, { action: 'namespace.activated' }),
    h(
      'p',
      { class: 'hint' },
      `${count(sum(usage.activations), 'activation')}, ${sum(usage.denied).toLocaleString('en')} denied.`,
      latest ? [' The last one was ', live('relative', latest.last_activated_at), `, of ${latest.namespace}.`] : [],
      ' ',
      h('a', { href: `#/audit${query({ action: 'namespace.activated' })}` }, 'All activations'),
    ),
  );
}

customElements.define('ov-overview', Overview);
