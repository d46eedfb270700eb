// What needs attention, and the latest activations; for a new organization, the steps to its first job.

import { call, query } from './api.js';
import { h, parted } from './dom.js';
import { count } from './forms.js';
import { Page, badge, live, section, time } from './parts.js';
import { loadAll } from './list.js';
import { DENIED, DENIED_DAYS, loadDenials, matches } from './denied.js';
import { isUnreachable, reasonText } from './health.js';
import { TYPE_NAMES, UNUSED_DAYS, place, unused } from './credentials.js';
import { noticeText } from './account.js';
import * as session from './session.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Integration} Integration
 * @typedef {import('./api.js').Account} Account
 * @typedef {import('./api.js').AuditEntry} AuditEntry
 * @typedef {import('./denied.js').Denial} Denial
 * @typedef {object} Concern
 * @property {string} kind
 * @property {import('./dom.js').Child[]} text
 * @property {[string, string][]} acts names and addresses of what can be done
 * @property {number} weight the smaller, the more urgent
 * @property {number} order within the same kind: the smaller comes first
 */

const DAY = 86_400_000;
/** How far ahead an end is worth a word, in days. */
const AHEAD = 30;
/** After how many days a staged version counts as forgotten. */
const FORGOTTEN = 7;
/** Concerns of one kind that are listed by themselves; the others are behind a link. */
const EACH = 5;
/** Credentials that are looked through. */
const LOOKED_THROUGH = 5000;
/** Days of the picture of activations. */
const DAYS = 30;

class Overview extends Page {
  label() {
    return 'Overview';
  }

  async content() {
    const admin = session.isAdmin();
    const since = new Date(Date.now() - DAYS * DAY).toISOString().replace(/\.\d+Z$/, 'Z');
    const [credentials, integrations, accounts, namespaces, receivers, activations, denied, kept, { body: own }] = await Promise.all([
      /** @type {Promise<{rows: Credential[], partial: boolean}>} */ (loadAll('/organization-vault', LOOKED_THROUGH)),
      admin ? /** @type {Promise<{rows: Integration[], partial: boolean}>} */ (loadAll('/integrations')) : null,
      admin ? /** @type {Promise<{rows: Account[], partial: boolean}>} */ (loadAll('/accounts')) : null,
      admin ? /** @type {Promise<{rows: import('./api.js').Namespace[], partial: boolean}>} */ (loadAll('/namespaces')) : null,
      admin ? call('GET', '/receivers').then(({ body }) => /** @type {import('./api.js').Receiver[]} */ (body)) : [],
      admin ? /** @type {Promise<{rows: AuditEntry[], partial: boolean}>} */ (loadAll(`/audit${query({ action: 'namespace.activated', since })}`, 5000)) : null,
      admin ? loadDenials() : null,
      admin ? loadKept(since) : [],
      call('GET', '/account'),
    ]);
    session.update(own);
    const looked = credentials.partial ? await urgent(credentials.rows) : credentials.rows;
    if (session.mayWrite()) this.actions(h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'));
    const used = credentials.rows.some(({ last_activated_at: at }) => at);
    const isNew = session.mayWrite() && !used && (!credentials.rows.length || (admin && !integrations?.rows.length) || (activations !== null && !activations.rows.length));
    const emails = new Map((accounts?.rows ?? []).map(({ id, email }) => [id, email]));
    const all = [
      ...ofCredentials(looked), ...ofIntegrations(integrations?.rows ?? []), ...ofPeople(accounts?.rows ?? []), ...ofReceivers(receivers),
      ...ofDenials(denied?.rows ?? [], integrations?.rows ?? [], namespaces?.rows ?? [], activations?.rows ?? []), ...ofRotations(kept, looked),
      ...(namespaces?.rows ?? []).filter(({ frozen }) => frozen).map(({ namespace }) => concern('frozen', [link(namespace, `#/credentials${query({ namespace })}`), ' is frozen. Its jobs are denied.'], [['Thaw', `#/namespaces${query({ namespace })}`]], 3)),
      ...own.notices.filter((/** @type {import('./api.js').Notice} */ { at }) => !at || Date.now() - Date.parse(at) < AHEAD * DAY)
        .map((/** @type {import('./api.js').Notice} */ notice) => concern('notice', [noticeText(notice, emails)], [['Your account', '#/account']], 2)),
    ];
    // The same kind stays together, and what comes first in it is the most urgent.
    const kinds = [...new Set(all.map(({ kind }) => kind))];
    const concerns = all.sort((one, other) => one.weight - other.weight || kinds.indexOf(one.kind) - kinds.indexOf(other.kind) || one.order - other.order);
    return [
      isNew && this.#steps(credentials.rows, integrations?.rows ?? []),
      attention(concerns, credentials.rows, credentials.partial, denied),
      this.#numbers(credentials, integrations, accounts),
      activations && activations.rows.length > 0 && picture(activations.rows, activations.partial),
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
    /** @type {[boolean, string, import('./dom.js').Child[]][]} */
    const steps = [
      [Boolean(first), 'Save a credential', [first ? `${first.namespace} is saved.` : 'Paste the key that a job has now.', ' ', !first && h('a', { href: '#/credentials/new' }, 'Add a credential')]],
      [Boolean(token), 'Create an integration for the job', session.isAdmin()
        ? [token ? `${token.name} is created.` : 'It gets a token that lets it use the credentials of its namespaces.', ' ', !token && h('a', { href: `#/integrations${query({ create: first?.namespace ?? 'yes' })}` }, 'Create an integration')]
        : ['An admin of your organization does this.']],
      [false, 'Run the job', ['The commands to paste are shown with the token', token && session.isAdmin() ? [', and under ', h('a', { href: `#/integrations${query({ lines: token.id })}` }, token.name)] : [], '. Its first use appears here.'].flat()],
    ];
    const now = steps.findIndex(([done]) => !done);
    return section('Three steps to the first job', h('ol', { class: 'first-steps' }, steps.map(([done, name, text], index) => h('li', { 'aria-current': index === now ? 'step' : null, class: done ? 'done' : null },
      h('strong', null, name, done && h('span', { class: 'hidden' }, ' (done)')), h('p', { class: 'hint' }, text)))));
  }

  /**
   * @param {{rows: Credential[], partial: boolean}} credentials
   * @param {{rows: Integration[], partial: boolean} | null} integrations
   * @param {{rows: Account[], partial: boolean} | null} accounts
   */
  #numbers(credentials, integrations, accounts) {
    const number = (/** @type {{rows: unknown[], partial: boolean}} */ { rows, partial }, /** @type {string} */ noun, /** @type {string} */ href) =>
      h('a', { class: 'number', href }, h('strong', null, rows.length.toLocaleString('en') + (partial ? '+' : '')), ` ${noun}${rows.length === 1 ? '' : 's'}`);
    return h('div', { class: 'numbers' }, number(credentials, 'credential', '#/credentials'), integrations && number(integrations, 'integration', '#/integrations'), accounts && number(accounts, 'account', '#/accounts'));
  }
}

/**
 * `rows`, and all others that fail or end soon, which the server looks for.
 * @param {Credential[]} rows
 */
async function urgent(rows) {
  const soon = new Date(Date.now() + AHEAD * DAY).toISOString().replace(/\.\d+Z$/, 'Z');
  const found = await Promise.all([loadAll(`/organization-vault${query({ health: 'failing' })}`), loadAll(`/organization-vault${query({ expires_before: soon })}`)]);
  /** @type {Map<string, Credential>} */
  const all = new Map([...rows, .../** @type {Credential[]} */ (found.flatMap(({ rows: more }) => more))].map((row) => [row.id, row]));
  return [...all.values()];
}

/**
 * @param {string} kind
 * @param {import('./dom.js').Child[]} text
 * @param {[string, string][]} acts
 * @param {number} weight
 * @param {number} [order]
 * @returns {Concern}
 */
function concern(kind, text, acts, weight, order = 0) {
  return { kind, text, acts, weight, order };
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
 * @param {{partial: boolean} | null} denied
 */
function attention(concerns, rows, partial, denied) {
  const unknown = [
    ['health', rows.filter(({ health }) => health.state !== 'expired' && !health.checked_at).length, session.server().checks ? '' : ' (checks are off)'],
    ['expiry', rows.filter(({ expires_at: at }) => !at).length, ''],
  ].flatMap(([what, number, why]) => number ? [`${what} of ${count(Number(number), 'credential')}${why}`] : []);
  const most = LOOKED_THROUGH.toLocaleString('en');
  const limits = [
    unknown.length > 0 && `Not known: ${unknown.join(', ')}${partial ? `, among the newest ${most}` : ''}.`,
    partial && `Forgotten and unused credentials are searched among the newest ${most}.`,
    denied?.partial && `Not all denied attempts of the last ${DENIED_DAYS} days are counted.`,
  ].filter(Boolean).join(' ');
  return section('Needs attention',
    concerns.length ? h('ul', { class: 'concerns' }, concerns.map(({ kind, text, acts, weight }) => h('li', null,
      badge(kind, weight <= 1 ? 'bad' : weight <= 3 ? 'warn' : 'plain'), h('span', null, text), h('span', { class: 'acts' }, acts.map(([name, href]) => h('a', { href }, name))))))
      : h('p', { class: `note ${unknown.length ? '' : 'good'}` }, 'Nothing needs attention.'),
    limits && h('p', { class: 'hint' }, limits));
}

/**
 * @param {Credential[]} rows
 * @returns {Concern[]}
 */
function ofCredentials(rows) {
  const name = (/** @type {Credential} */ row) => [link(row.namespace, `#/credentials/${row.id}`), ` (${[TYPE_NAMES[row.type], place(row)].filter(Boolean).join(', ')})`];
  const ends = (/** @type {Credential} */ { expires_at: at }) => at ? Date.parse(at) - Date.now() : Infinity;
  const writes = session.mayWrite();
  const fails = (/** @type {Credential} */ { health }) => health.state === 'failing';
  const staged = (/** @type {Credential} */ { updated_at: at }) => count(Math.floor((Date.now() - Date.parse(at)) / DAY), 'day');
  /**
   * Kind, weight, action, filter of the list of all, whether a row is of it, what is wrong, where to act, and by what it is sorted.
   * @type {[string, number, string, string, (row: Credential) => boolean, (row: Credential) => import('./dom.js').Child[], (row: Credential) => string, (row: Credential) => number][]}
   */
  const kinds = [
    ['expired', 0, 'Replace', 'health=expired&sort=Expires', (row) => ends(row) <= 0, (row) => [' expired ', live('deadline', row.expires_at ?? ''), '.'], ({ id }) => `#/credentials/${id}/replace`, ends],
    ['failing', 1, 'View', 'health=failing', (row) => fails(row) && !isUnreachable(row.health), ({ health }) => [` does not work: ${reasonText(health.reason)}.`], ({ id }) => `#/credentials/${id}`, ({ health }) => Date.parse(health.since ?? '') || 0],
    ['expiring', 2, 'Rotate', 'within=30&sort=Expires', (row) => ends(row) > 0 && ends(row) < AHEAD * DAY, (row) => [' expires ', live('deadline', row.expires_at ?? ''), '.'], ({ id }) => `#/credentials/${id}/replace`, ends],
    ['unreachable', 2, 'View', 'health=failing', (row) => fails(row) && isUnreachable(row.health), ({ health }) => [` could not be checked: ${reasonText(health.reason)}.`], ({ id }) => `#/credentials/${id}`, ({ health }) => Date.parse(health.since ?? '') || 0],
    ['staged', 3, 'Continue rotation', 'use=staged', ({ staged_version: version, updated_at: at }) => Boolean(version) && Date.now() - Date.parse(at) > FORGOTTEN * DAY, (row) => [` has had version ${row.staged_version} staged for ${staged(row)}.`], ({ id }) => `#/credentials/${id}/rotate`, ({ updated_at: at }) => Date.parse(at)],
    ['unused', 5, 'View', 'use=unused', unused, (row) => row.last_activated_at ? [' was last used ', live('relative', row.last_activated_at), '.'] : [` has not been used in ${UNUSED_DAYS} days.`], ({ id }) => `#/credentials/${id}`, ({ last_activated_at: at, created_at: created }) => Date.parse(at ?? created)],
  ];
  return kinds.flatMap(([kind, weight, act, filter, is, text, href, order]) => {
    const found = writes || weight <= 2 ? rows.filter(is).toSorted((one, other) => order(one) - order(other)) : [];
    const listed = found.slice(0, found.length > EACH + 1 ? EACH : found.length)
      .map((row) => concern(kind, [...name(row), ...text(row)], [writes ? [act, href(row)] : ['View', `#/credentials/${row.id}`]], weight, order(row)));
    const more = found.length - listed.length;
    return more ? [...listed, concern(kind, [`${count(more, 'more credential')}.`], [['List all', `#/credentials?${filter}`]], weight, Infinity)] : listed;
  });
}

/**
 * Versions that replaced another one since a time and were not followed by the destruction of that one, by credential, from
 * the audit log.
 * @param {string} since
 * @returns {Promise<AuditEntry[]>}
 */
async function loadKept(since) {
  const actions = ['credential.promoted', 'credential.replaced', 'credential.version-destroyed'];
  const answers = await Promise.all(actions.map((action) => call('GET', `/audit${query({ action, since, limit: '1000' })}`)));
  const entries = /** @type {AuditEntry[]} */ (answers.flatMap(({ body }) => body)).sort((one, other) => one.id.localeCompare(other.id));
  /** @type {Map<string, AuditEntry>} */
  const kept = new Map();
  for (const entry of entries) {
    const { from, to } = entry.changes?.find(({ field }) => field === 'version') ?? {};
    if (from && to) kept.set(entry.subject, entry);
    else if (from && kept.get(entry.subject)?.changes?.some(({ from: old }) => old === from)) kept.delete(entry.subject);
  }
  return [...kept.values()];
}

/**
 * Rotations whose old version is still kept.
 * @param {AuditEntry[]} kept
 * @param {Credential[]} rows
 * @returns {Concern[]}
 */
function ofRotations(kept, rows) {
  return kept.flatMap(({ subject, at, changes }) => {
    const row = rows.find(({ id }) => subject === `credential:${id}`);
    const old = changes?.find(({ field }) => field === 'version')?.from;
    // A staged version is the next rotation, which has a row of its own.
    if (!row || row.staged_version) return [];
    return [concern('rotation', [link(row.namespace, `#/credentials/${row.id}`), ': rotation not finished. Promoted ', live('relative', at), `, version ${old} is still kept.`], [['Continue rotation', `#/credentials/${row.id}/rotate`]], 3, Date.parse(at))];
  });
}

/**
 * Denied attempts whose cause still exists.
 * @param {Denial[]} denied
 * @param {Integration[]} integrations
 * @param {import('./api.js').Namespace[]} namespaces
 * @param {AuditEntry[]} activations newest first
 * @returns {Concern[]}
 */
function ofDenials(denied, integrations, namespaces, activations) {
  const frozen = new Set(namespaces.filter((one) => one.frozen).map(({ namespace }) => namespace));
  const open = denied.filter(({ integration: id, namespace, action, last }) => {
    const integration = integrations.find(({ id: one }) => one === id);
    if (!integration) return false; // deleted since
    if (action === 'activation.refused-outside' && namespace && matches(integration.namespaces, namespace)) return false;
    if (action === 'activation.refused-frozen' && namespace && !frozen.has(namespace)) return false;
    return !activations.some((entry) => entry.integration === id && entry.at > last && (!namespace || entry.namespace === namespace));
  });
  return open.map(({ integration: id, namespace, action, count: times, last }) => {
    const name = integrations.find(({ id: one }) => one === id)?.name ?? id;
    /** @type {[string, string][]} */
    const acts = [
      ...(action === 'activation.refused-outside' && namespace ? [/** @type {[string, string]} */ (['Grant access', `#/integrations${query({ edit: id, add: namespace })}`])] : []),
      ...(action === 'activation.refused-token' ? [/** @type {[string, string]} */ (['View integration', `#/integrations${query({ name })}`])] : []),
      ['See attempts', `#/audit${query({ action, actor: id, namespace })}`],
    ];
    return concern('denied', [link(name, `#/integrations${query({ name })}`), ' was denied', namespace ? [' ', h('code', null, namespace)] : [], ` (${DENIED[action]}), ${times.toLocaleString('en')}×, last `, live('relative', last), '.'].flat(), acts, 1, -Date.parse(last));
  });
}

/**
 * @param {Integration[]} rows
 * @returns {Concern[]}
 */
function ofIntegrations(rows) {
  return rows.flatMap(({ id, name, expires_at: at, state }) => {
    const left = at && state !== 'disabled' ? Date.parse(at) - Date.now() : Infinity;
    if (!at || left > AHEAD * DAY) return [];
    return [concern(left <= 0 ? 'expired' : 'expiring', ['The integration ', link(name, `#/integrations${query({ name })}`), left <= 0 ? ' expired ' : ' expires ', live('deadline', at), left <= 0 ? '. Its jobs are denied.' : '. Its jobs are denied from then on.'], [['Change expiry', `#/integrations${query({ edit: id })}`]], left <= 0 ? 0 : 2, left)];
  });
}

/**
 * @param {Account[]} rows
 * @returns {Concern[]}
 */
function ofPeople(rows) {
  return rows.flatMap(({ email, state, locked, invitation_expires_at: at }) => {
    const who = link(email, `#/accounts${query({ email })}`);
    if (locked) return [concern('locked', [who, ' is locked after failed sign-ins.'], [['Unlock', `#/accounts${query({ email })}`]], 3)];
    if (state !== 'invited' && state !== 're-enrolling') return [];
    const over = at ? Date.parse(at) <= Date.now() : true;
    return [concern('waiting', [who, state === 'invited' ? ' has not accepted the invitation' : ' has not set up the sign-in again', at ? [over ? ': it expired ' : ': it expires ', live('deadline', at)] : [], '.'].flat(), [[over ? 'Invite again' : 'View', `#/accounts${query({ email })}`]], 4, at ? Date.parse(at) : 0)];
  });
}

/**
 * @param {import('./api.js').Receiver[]} rows
 * @returns {Concern[]}
 */
function ofReceivers(rows) {
  return rows.filter(({ state, last_error: error }) => state === 'failing' || (state === 'disabled' && error)).map(({ url, to, state }) =>
    concern('receiver', ['Notifications to ', h('strong', { translate: 'no' }, url ?? to), state === 'failing' ? ' have not been delivered for a day.' : ' are off: the receiver is gone, or its address has no active user.'], [['View', '#/receivers']], 2));
}

/**
 * How many activations there were on each of the last days.
 * @param {AuditEntry[]} entries
 * @param {boolean} partial
 */
function picture(entries, partial) {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const bars = Array.from({ length: DAYS }, (_, index) => ({ start: today.getTime() - (DAYS - 1 - index) * DAY, number: 0 }));
  for (const { at, count: times = 1 } of entries) {
    const bar = bars[DAYS - 1 - Math.floor((today.getTime() + DAY - 1 - Date.parse(at)) / DAY)];
    if (bar) bar.number += times;
  }
  const most = Math.max(1, ...bars.map(({ number }) => number));
  const total = bars.reduce((sum, { number }) => sum + number, 0);
  const chart = h('div', { class: 'bars', role: 'img', 'aria-label': `${count(total, 'activation')} in ${DAYS} days, at most ${most} on one day` }, bars.map(({ start, number }) => {
    const bar = h('span', { class: number ? 'bar-of' : 'bar-of none', title: `${new Date(start).toLocaleDateString(undefined, { dateStyle: 'medium' })}: ${count(number, 'activation')}` });
    bar.style.height = `${Math.round(100 * number / most)}%`;
    return bar;
  }));
  const latest = entries[0];
  return section('Activations of the last 30 days', h('div', null, h('p', { class: 'axis', 'aria-hidden': 'true' }, `${most.toLocaleString('en')} a day`), chart,
    h('p', { class: 'axis', 'aria-hidden': 'true' }, h('span', null, new Date(bars[0]?.start ?? 0).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })), h('span', null, 'today'))),
    h('p', { class: 'hint' }, `${count(total, 'activation')}${partial ? ' at least' : ''}`, latest ? ['; the last ', time(latest.at), latest.namespace ? ` of ${latest.namespace}` : ''] : [], '. ', h('a', { href: `#/audit${query({ action: 'namespace.activated' })}` }, 'All of them')));
}

customElements.define('ov-overview', Overview);
