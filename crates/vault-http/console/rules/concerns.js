// What needs attention: which facts, how urgent each is, and how many things it concerns. Texts are parts, which the page renders.

import { TYPE_NAMES, UNUSED_DAYS, isKeyless, place, unused } from './credentials.js';
import { DENIED, deniedIn, deniedSince, matches } from './denied.js';
import { isUnreachable, reasonText } from './reasons.js';
import { waiting } from './holders.js';
import { rhythm, startOfDay } from './usage.js';

/**
 * @typedef {import('../parts/api.js').Credential} Credential
 * @typedef {import('../parts/api.js').Integration} Integration
 * @typedef {import('../parts/api.js').Account} Account
 * @typedef {import('../parts/api.js').NamespaceUse} NamespaceUse
 * @typedef {import('../parts/api.js').Holder} Holder
 * @typedef {'broken' | 'today' | 'week' | 'later' | 'aside'} Group
 * @typedef {string | {name: string, href: string} | {when: 'deadline' | 'relative' | 'until', at: string} | {code: string} | {strong: string}} Part
 * @typedef {{name: string, href: string} | {name: string, check: Credential[]}} Act what can be done: a page, or a check of credentials
 * @typedef {object} Concern
 * @property {string} key names the fact with its cause. If it changes or gets worse, the key does. Empty: it cannot be set aside
 * @property {Group} group
 * @property {number} at when it happens or happened
 * @property {Part[]} text
 * @property {string} by who uses it
 * @property {Act[]} acts
 * @property {number} count of the things that it concerns
 * @property {string} [until] when it is shown again, if it is set aside
 * @typedef {object} Known
 * @property {Credential[]} credentials
 * @property {Integration[]} integrations
 * @property {Account[]} accounts
 * @property {import('../parts/api.js').Receiver[]} receivers
 * @property {import('../parts/api.js').Namespace[]} namespaces
 * @property {import('../parts/api.js').NamespaceUsage | null} usage
 * @property {import('../parts/api.js').Notice[]} notices
 * @property {Map<string, Holder[]>} holders by the id of a credential
 * @property {boolean} writes whether the user may change credentials
 * @property {boolean} admin
 * @property {number} days that the usage covers
 * @property {Map<string, string>} aside until when concerns are set aside, by their keys
 * @property {number} now
 */

const DAY = 86_400_000;
/** How far ahead an expiry is listed, in days. */
export const AHEAD = 30;
/** How far ahead it is urgent, in days. */
const WEEK = 7;
/** After how many days a staged version counts as forgotten. */
const FORGOTTEN = 7;
/** Concerns of one kind that are listed; the others are one row. */
const EACH = 5;
/** Credentials with one common cause from which they are one row. */
const COMMON = 2;
/** Integrations that are named as users of a credential. */
const USERS = 2;

/** What may be the cause if several credentials cannot be checked. @type {Record<string, string>} */
const CAUSES = {
  dns: 'this server may have no DNS',
  unreachable: 'this server may have no connection',
  'blocked-egress': 'the operator can allow the addresses',
  'proxy-unreachable': 'the operator can check the proxy',
  'proxy-credentials': 'the operator can check the proxy',
  'proxy-refused': 'the operator can check the proxy',
  'clock-skew': 'the clock of this server may be wrong',
  'not-configured': 'the operator can enable checks',
};

/** @type {{group: Group, heading: string, kind: string}[]} */
const GROUPS = [
  { group: 'broken', heading: 'Broken now', kind: 'bad' },
  { group: 'today', heading: 'Today', kind: 'warn' },
  { group: 'week', heading: 'This week', kind: 'warn' },
  { group: 'later', heading: 'Later', kind: 'plain' },
  { group: 'aside', heading: 'Set aside', kind: 'plain' },
];

/**
 * @param {Partial<Concern> & Pick<Concern, 'key' | 'group' | 'at' | 'text'>} concern
 * @returns {Concern}
 */
const concern = (concern) => ({ by: '', acts: [], count: 1, ...concern });

/** @param {number} number @param {string} noun */
const count = (number, noun) => `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;

/** @param {string | undefined} text */
const instant = (text) => Date.parse(text ?? '') || 0;

/** @param {Record<string, string | undefined>} values */
const search = (values) =>
  `?${new URLSearchParams(Object.entries(values).flatMap(([name, value]) => (value ? [[name, value]] : [])))}`;

/**
 * The rows with the same key, in their order.
 * @template T
 * @param {T[]} rows
 * @param {(row: T) => string} keyOf
 */
function alike(rows, keyOf) {
  /** @type {Map<string, T[]>} */
  const found = new Map();
  for (const row of rows) found.set(keyOf(row), [...(found.get(keyOf(row)) ?? []), row]);
  return found;
}

/**
 * How urgent something is that happens at a time ahead.
 * @param {number} at
 * @param {number} now
 * @returns {Group}
 */
export function urgency(at, now) {
  if (at < startOfDay(now) + DAY) return 'today';
  return at - now < WEEK * DAY ? 'week' : 'later';
}

/**
 * All concerns.
 * @param {Known} known
 */
export function concernsOf(known) {
  const concerns = [
    ...ofCredentials(known),
    ...ofUnreachable(known),
    ...ofIntegrations(known),
    ...ofPeople(known),
    ...ofReceivers(known),
    ...ofDenials(known),
    ...ofRotations(known),
    ...ofSilence(known),
    ...ofFreezes(known),
    ...ofNotices(known),
  ];
  return concerns.map((one) => {
    const until = known.aside.get(one.key);
    return until ? { ...one, group: /** @type {Group} */ ('aside'), until } : one;
  });
}

/**
 * The start of a day ahead, in this time zone, in RFC 3339.
 * @param {number} days
 * @param {number} now
 */
export function dayAhead(days, now) {
  const day = new Date(startOfDay(now));
  day.setDate(day.getDate() + days);
  return day.toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * The concerns by their groups, each in the order of its time: what broke last comes first, then what happens next. What has
 * no time ahead comes last.
 * @param {Concern[]} concerns
 * @param {number} now
 */
export function grouped(concerns, now) {
  const key = (/** @type {Concern} */ { group, at }) => (group === 'broken' ? -at : at > now ? at - now : Infinity);
  const sorted = concerns.toSorted((one, other) => {
    const [a, b] = [key(one), key(other)];
    return a === b ? one.at - other.at : a - b;
  });
  return GROUPS.map((group) => {
    const rows = sorted.filter((one) => one.group === group.group);
    return { ...group, rows, count: rows.reduce((sum, row) => sum + row.count, 0) };
  }).filter(({ rows }) => rows.length);
}

/**
 * Who uses a namespace: "used by payroll-export, daily 02:00".
 * @param {Known} known
 * @param {string} namespace
 */
export function usedBy({ usage, integrations, admin, days }, namespace) {
  if (!admin || !usage) return '';
  const name = (/** @type {NamespaceUse} */ { integration }) =>
    integrations.find(({ id }) => id === integration)?.name ?? 'a deleted integration';
  const [first, ...others] = usage.uses
    .filter((use) => use.namespace === namespace)
    .toSorted((one, other) => other.activations - one.activations);
  if (!first) return `not used in ${days} days`;
  const named = others.slice(0, USERS - 1).map(name);
  const more = others.length - named.length;
  return `used by ${[`${name(first)}, ${rhythm(first, days)}`, ...named, ...(more ? [`${more} more`] : [])].join('; ')}`;
}

/**
 * A credential with its namespace and, if that has several, what distinguishes it.
 * @param {Known} known
 * @param {Credential} row
 * @returns {Part[]}
 */
function named({ credentials }, row) {
  const { id, namespace, type } = row;
  const several = credentials.filter((one) => one.namespace === namespace).length > 1;
  return [
    { name: namespace, href: `#/credentials/${id}` },
    several ? ` (${[TYPE_NAMES[type], place(row)].filter(Boolean).join(', ')})` : '',
  ];
}

/**
 * What can be wrong with one credential. `page`: where to act on it.
 * @param {Known} known
 * @returns {{key: (row: Credential) => string, act: string, page: string, filter: string, is: (row: Credential) => boolean, text: (row: Credential) => Part[], group: (at: number) => Group, at: (row: Credential) => number}[]}
 */
function kinds({ now, writes }) {
  const ends = (/** @type {Credential} */ { expires_at: at }) => (at ? Date.parse(at) : Infinity);
  const expires = (/** @type {Credential} */ { expires_at: at = '' }) =>
    /** @type {Part[]} */ ([Date.parse(at) <= now ? ' expired ' : ' expires ', { when: 'deadline', at }, '.']);
  const ahead = (/** @type {number} */ from, /** @type {number} */ to) => (/** @type {Credential} */ row) =>
    ends(row) > from && ends(row) <= to;
  const [week, month] = [now + WEEK * DAY, now + AHEAD * DAY];
  const soon = (/** @type {number} */ at) => urgency(at, now);
  const rotate = { key: () => 'expires', act: 'Rotate', page: '/replace', text: expires, group: soon, at: ends };
  return [
    {
      ...rotate,
      key: () => 'expired',
      act: 'Replace',
      filter: 'health=expired&sort=Expires',
      is: (row) => ends(row) <= now,
      group: () => 'broken',
    },
    {
      key: ({ health }) => `failing ${health.reason}`,
      act: 'View',
      page: '',
      filter: 'health=failing',
      is: ({ health }) => health.state === 'failing' && !isUnreachable(health),
      text: ({ health }) => [` does not work: ${reasonText(health.reason)}.`],
      group: () => 'broken',
      at: ({ health }) => instant(health.since ?? health.checked_at),
    },
    { ...rotate, filter: 'within=7&sort=Expires', is: ahead(now, week) },
    { ...rotate, filter: 'within=30&sort=Expires', is: ahead(week, month) },
    {
      key: () => 'staged',
      act: 'Continue rotation',
      page: '/rotate',
      filter: 'use=rotation',
      is: ({ staged_version: version, updated_at: at }) =>
        writes && Boolean(version) && now - Date.parse(at) > FORGOTTEN * DAY,
      text: ({ staged_version: version, updated_at: at }) => [
        ` has had version ${version} staged for ${count(Math.floor((now - Date.parse(at)) / DAY), 'day')}.`,
      ],
      group: () => 'later',
      at: ({ updated_at: at }) => Date.parse(at),
    },
  ];
}

/** @param {Known} known */
function ofCredentials(known) {
  const { credentials, writes, now } = known;
  const found = kinds(known).flatMap(({ key, act, page, filter, is, text, group, at }) => {
    const keyOf = (/** @type {Credential} */ row) => `${key(row)} ${row.id} ${at(row)}`;
    const isAside = (/** @type {Credential} */ row) => known.aside.has(keyOf(row));
    const all = credentials.filter(is).toSorted((one, other) => at(one) - at(other));
    const rows = all.filter((row) => !isAside(row));
    const listed = rows.slice(0, rows.length > EACH + 1 ? EACH : rows.length);
    const shown = [...listed, ...all.filter(isAside)].map((row) =>
      concern({
        key: keyOf(row),
        group: group(at(row)),
        at: at(row),
        text: [...named(known, row), ...text(row)],
        acts: [
          writes
            ? { name: act, href: `#/credentials/${row.id}${page}` }
            : { name: 'View', href: `#/credentials/${row.id}` },
        ],
        by: usedBy(known, row.namespace),
      }),
    );
    return rows.length > listed.length
      ? [...shown, rest(rows.length - listed.length, group(at(/** @type {Credential} */ (rows[EACH]))), filter)]
      : shown;
  });
  const idle = writes ? credentials.filter((row) => unused(row, now)) : [];
  return idle.length ? [...found, ...ofUnused(known, idle)] : found;
}

/**
 * The row for those of a kind that are not listed. Others could join it, so it cannot be set aside.
 * @param {number} number
 * @param {Group} group
 * @param {string} filter of the list
 * @param {string} [noun]
 */
function rest(number, group, filter, noun = 'more credential') {
  return concern({
    key: '',
    group,
    at: group === 'broken' ? -Infinity : Infinity,
    text: [`${count(number, noun)}.`],
    acts: [{ name: 'List all', href: `#/credentials?${filter}` }],
    count: number,
  });
}

/**
 * @param {Known} known
 * @param {Credential[]} idle
 */
function ofUnused(known, idle) {
  const since = (/** @type {Credential} */ row) => Date.parse(row.last_activated_at ?? row.created_at);
  if (idle.length > COMMON)
    return [
      concern({
        // Of the next one, the last use is later.
        key: `unused ${Math.max(...idle.map(since))}`,
        group: 'later',
        at: Infinity,
        text: [`${count(idle.length, 'credential')} have not been used in ${UNUSED_DAYS} days.`],
        acts: [{ name: 'List all', href: '#/credentials?use=unused&sort=Last+used' }],
        count: idle.length,
      }),
    ];
  return idle.map((row) =>
    concern({
      key: `unused ${row.id} ${since(row)}`,
      group: 'later',
      at: since(row),
      text: [
        ...named(known, row),
        ...(row.last_activated_at
          ? /** @type {Part[]} */ ([' was last used ', { when: 'relative', at: row.last_activated_at }, '.'])
          : [` has not been used in ${UNUSED_DAYS} days.`]),
      ],
      acts: [{ name: 'View', href: `#/credentials/${row.id}` }],
    }),
  );
}

/**
 * Credentials whose check did not get through: one row for each cause.
 * @param {Known} known
 */
function ofUnreachable(known) {
  const rows = known.credentials.filter(({ health }) => health.state === 'failing' && isUnreachable(health));
  return [...alike(rows, ({ health }) => health.reason ?? '')].map(([reason, same]) => {
    const [first] = same;
    const at = Math.max(...same.map(({ health }) => instant(health.since ?? health.checked_at)));
    const one = same.length === 1 && first;
    /** @type {Act} */
    const view = one
      ? { name: 'View', href: `#/credentials/${one.id}` }
      : { name: 'List all', href: '#/credentials?health=unreachable' };
    const cause = CAUSES[reason];
    return concern({
      key: `unreachable ${reason} ${at}`, // of the last one that joined
      group: 'week',
      at,
      text: one
        ? [...named(known, one), ` could not be checked: ${reasonText(reason)}.`]
        : [
            `${count(same.length, 'credential')} could not be checked (${reasonText(reason)})${cause ? `: ${cause}` : ''}.`,
          ],
      acts: [...(known.writes ? [{ name: 'Check again', check: same }] : []), view],
      by: one ? usedBy(known, one.namespace) : '',
      count: same.length,
    });
  });
}

/**
 * The rotations whose other version is still kept, the first to end first. A staged version is the next rotation, which is a
 * separate concern. A version without a key needs no action.
 * @param {Credential[]} credentials
 */
export function openRotations(credentials) {
  const end = (/** @type {Credential} */ { previous_version_until: until, updated_at: at }) => Date.parse(until ?? at);
  return credentials
    .filter(({ type, previous_version: old, staged_version: staged }) => old && !staged && !isKeyless(type))
    .toSorted((one, other) => end(one) - end(other));
}

/** The rotations of which the holders are read. @param {Credential[]} credentials */
export function listedRotations(credentials) {
  const open = openRotations(credentials);
  return open.slice(0, open.length > EACH + 1 ? EACH : open.length);
}

/** @param {Known} known */
function ofRotations(known) {
  if (!known.writes) return [];
  const listed = listedRotations(known.credentials);
  const shown = listed.map((row) => {
    const { id, namespace, version, previous_version: other = 0, previous_version_until: until } = row;
    const last = waiting(known.holders.get(id) ?? [])[0];
    const back = other > version;
    return concern({
      key: `rotation ${id} ${version} ${other} ${Boolean(last)}`,
      group: 'week',
      at: Date.parse(until ?? row.updated_at),
      text: [
        ...named(known, row),
        back ? `: rolled back to version ${version}.` : ': rotation not finished.',
        ...(last
          ? /** @type {Part[]} */ ([
              ` Jobs may use version ${last.version} until `,
              { when: 'until', at: last.until },
              '.',
            ])
          : [` No job can use version ${other} any more${back ? '.' : ': disable the old key.'}`]),
        ...(until
          ? /** @type {Part[]} */ ([` Version ${other} is deleted `, { when: 'deadline', at: until }, '.'])
          : []),
      ],
      acts: [{ name: back ? 'View' : 'Continue rotation', href: `#/credentials/${id}/rotate` }],
      by: usedBy(known, namespace),
    });
  });
  const more = openRotations(known.credentials).length - listed.length;
  return more ? [...shown, rest(more, 'week', 'use=rotation', 'more rotation')] : shown;
}

/**
 * Regular uses that have stopped.
 * @param {Known} known
 */
function ofSilence({ usage, integrations, days, now }) {
  return (usage?.uses ?? []).flatMap((use) => {
    const name = integrations.find(({ id }) => id === use.integration)?.name;
    if (!use.silent || !name) return [];
    const last = Date.parse(use.last_activated_at);
    const missed = Math.round((startOfDay(now) - startOfDay(last)) / DAY);
    const date = new Date(last).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
    return [
      concern({
        key: `silent ${use.integration} ${use.namespace} ${use.last_activated_at}`,
        group: 'broken',
        at: last,
        text: [
          { name: use.namespace, href: `#/credentials${search({ namespace: use.namespace })}` },
          `: ${rhythm(use, days)} until ${date}, nothing for ${count(missed, 'day')}.`,
        ],
        acts: [{ name: 'View integration', href: `#/integrations/${use.integration}` }],
        by: `used by ${name}`,
      }),
    ];
  });
}

/**
 * Whether the cause of a denied attempt still exists.
 * @param {import('./denied.js').Denial} denial
 * @param {Known} known
 */
function isOpen({ integration: id, namespace, action, last }, { usage, integrations, namespaces }) {
  const integration = integrations.find(({ id: one }) => one === id);
  if (!integration || last < deniedSince()) return false; // or deleted since
  if (action === 'activation.refused-outside' && namespace && matches(integration.namespaces, namespace)) return false;
  const frozen = namespaces.some((one) => one.frozen && one.namespace === namespace);
  if (action === 'activation.refused-frozen' && namespace && !frozen) return false;
  return !usage?.uses.some(
    (use) => use.integration === id && use.last_activated_at > last && (!namespace || use.namespace === namespace),
  );
}

/**
 * The last use after which an integration was denied: further attempts are the same problem until it succeeds.
 * @param {Known} known
 * @param {string} id
 * @param {string | undefined} namespace
 */
function lastUse({ usage }, id, namespace) {
  const uses = usage?.uses.filter((use) => use.integration === id && (!namespace || use.namespace === namespace)) ?? [];
  return uses
    .map(({ last_activated_at: at }) => at)
    .sort()
    .at(-1);
}

/** @param {Known} known */
function ofDenials(known) {
  const denials = known.usage ? deniedIn(known.usage).filter((denial) => isOpen(denial, known)) : [];
  return denials.map(({ integration: id, namespace, action, count: times, last }) => {
    const name = known.integrations.find(({ id: one }) => one === id)?.name ?? id;
    const outside = action === 'activation.refused-outside' && namespace;
    return concern({
      key: `denied ${id} ${namespace} ${action} ${lastUse(known, id, namespace)}`,
      group: 'broken',
      at: Date.parse(last),
      text: [
        { name, href: `#/integrations/${id}` },
        ' was denied',
        ...(namespace ? /** @type {Part[]} */ ([' ', { code: namespace }]) : []),
        ` (${DENIED[action]}), ${times.toLocaleString('en')}×, last `,
        { when: 'relative', at: last },
        '.',
      ],
      acts: [
        ...(outside ? [{ name: 'Grant access', href: `#/integrations/${id}${search({ add: namespace })}` }] : []),
        ...(action === 'activation.refused-token' ? [{ name: 'View integration', href: `#/integrations/${id}` }] : []),
        { name: 'See attempts', href: `#/audit${search({ action, actor: id, namespace })}` },
      ],
    });
  });
}

/** @param {Known} known */
function ofIntegrations({ integrations, now }) {
  return integrations.flatMap(({ id, name, expires_at: at, state }) => {
    const end = at && state !== 'disabled' ? Date.parse(at) : Infinity;
    if (!at || end > now + AHEAD * DAY) return [];
    const over = end <= now;
    return [
      concern({
        key: `integration ${id} ${at} ${over}`,
        group: over ? 'broken' : urgency(end, now),
        at: end,
        text: [
          'The integration ',
          { name, href: `#/integrations/${id}` },
          over ? ' expired ' : ' expires ',
          { when: 'deadline', at },
          over ? '. Its jobs are denied.' : '. Its jobs are denied from then on.',
        ],
        acts: [{ name: 'Change expiry', href: `#/integrations/${id}${search({ edit: 'yes' })}` }],
      }),
    ];
  });
}

/** @param {Known} known */
function ofPeople({ accounts, now }) {
  return accounts.flatMap((account) => {
    const { email, state, locked, locked_since: since, failed_logins: failed, invitation_expires_at: at } = account;
    const href = `#/accounts${search({ email })}`;
    const who = { name: email, href };
    if (locked)
      return [
        concern({
          key: `locked ${email} ${since}`,
          group: 'broken',
          at: instant(since),
          text: [who, ` is locked after ${failed ? count(failed, 'failed sign-in') : 'failed sign-ins'}.`],
          acts: [{ name: 'Unlock', href }],
        }),
      ];
    if (state !== 'invited' && state !== 're-enrolling') return [];
    const over = at ? Date.parse(at) <= now : true;
    return [
      concern({
        key: `invited ${email} ${at} ${over}`,
        group: 'week',
        at: instant(at),
        text: [
          who,
          state === 'invited' ? ' has not accepted the invitation' : ' has not set up the sign-in again',
          ...(at ? /** @type {Part[]} */ ([over ? ': it expired ' : ': it expires ', { when: 'deadline', at }]) : []),
          '.',
        ],
        acts: [{ name: over ? 'Invite again' : 'View', href }],
      }),
    ];
  });
}

/** @param {Known} known */
function ofFreezes(known) {
  return known.namespaces
    .filter(({ frozen }) => frozen)
    .map(({ namespace, frozen_at: at = '' }) =>
      concern({
        key: `frozen ${namespace} ${at}`,
        group: 'broken',
        at: Date.parse(at),
        text: [
          { name: namespace, href: `#/credentials${search({ namespace })}` },
          ' was frozen ',
          { when: 'relative', at },
          '. Its jobs are denied.',
        ],
        acts: known.admin ? [{ name: 'Thaw', href: `#/namespaces${search({ namespace })}` }] : [],
        by: usedBy(known, namespace),
      }),
    );
}

/**
 * The notices of the last days, one row for those of the same kind.
 * @param {Known} known
 */
function ofNotices({ notices, accounts, now }) {
  const lately = notices.filter(({ at }) => !at || now - Date.parse(at) < AHEAD * DAY);
  return [...alike(lately, ({ code, account }) => `${code} ${account}`).values()].flatMap((same) => {
    const [notice] = same; // the newest
    if (!notice) return [];
    const { account, detail, at } = notice;
    const who = account
      ? (accounts.find(({ id }) => id === account)?.email ?? 'A user whose account is deleted')
      : 'You';
    return [
      concern({
        key: `notice ${notice.code} ${account} ${at}`,
        group: 'week',
        at: instant(at),
        text: [{ strong: who }, `: ${detail}${same.length > 1 ? ` (${same.length}×)` : ''}`],
        acts: [{ name: 'Your account', href: '#/account' }],
        count: same.length,
      }),
    ];
  });
}

/** @param {Known} known */
function ofReceivers({ receivers }) {
  return receivers
    .filter(({ state, last_error: error }) => state === 'failing' || (state === 'disabled' && error))
    .map(({ id, url, to, state, last_delivered_at: at }) =>
      concern({
        key: `receiver ${id} ${state} ${at}`,
        group: 'broken',
        at: 0,
        text: [
          'Notifications to ',
          { strong: url ?? to ?? '' },
          state === 'failing'
            ? ' have not been delivered for a day.'
            : ' are off: the receiver is gone, or its address has no active user.',
        ],
        acts: [{ name: 'View', href: '#/receivers' }],
      }),
    );
}
