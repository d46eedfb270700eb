// What needs attention, and what has happened; for a new organization, the way to its first job.

import { call, query } from './api.js';
import { h } from './dom.js';
import { count } from './forms.js';
import { Page, badge, day, relative, section, time } from './parts.js';
import { loadAll } from './list.js';
import { TYPE_NAMES, UNUSED_DAYS, place, unused } from './credentials.js';
import { noticeText } from './account.js';
import * as session from './session.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Integration} Integration
 * @typedef {import('./api.js').Account} Account
 * @typedef {import('./api.js').AuditEntry} AuditEntry
 * @typedef {{kind: string, text: import('./dom.js').Child[], href: string, act: string, weight: number}} Concern
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
    const [credentials, integrations, accounts, namespaces, receivers, activations, { body: own }] = await Promise.all([
      /** @type {Promise<{rows: Credential[], partial: boolean}>} */ (loadAll('/organization-vault', LOOKED_THROUGH)),
      admin ? /** @type {Promise<{rows: Integration[], partial: boolean}>} */ (loadAll('/integrations')) : null,
      admin ? /** @type {Promise<{rows: Account[], partial: boolean}>} */ (loadAll('/accounts')) : null,
      admin ? /** @type {Promise<{rows: import('./api.js').Namespace[], partial: boolean}>} */ (loadAll('/namespaces')) : null,
      admin ? call('GET', '/receivers').then(({ body }) => /** @type {import('./api.js').Receiver[]} */ (body)) : [],
      admin ? /** @type {Promise<{rows: AuditEntry[], partial: boolean}>} */ (loadAll(`/audit${query({ action: 'namespace.activated', since })}`, 5000)) : null,
      call('GET', '/account'),
    ]);
    session.update(own);
    const looked = credentials.partial ? await urgent(credentials.rows) : credentials.rows;
    if (session.mayWrite()) this.actions(h('a', { class: 'button primary', href: '#/credentials/new' }, 'Add a credential'));
    const used = credentials.rows.some(({ last_activated_at: at }) => at);
    const isNew = session.mayWrite() && !used && (!credentials.rows.length || (admin && !integrations?.rows.length) || (activations !== null && !activations.rows.length));
    const emails = new Map((accounts?.rows ?? []).map(({ id, email }) => [id, email]));
    const concerns = [
      ...own.notices.filter((/** @type {import('./api.js').Notice} */ { at }) => !at || Date.now() - Date.parse(at) < AHEAD * DAY)
        .map((/** @type {import('./api.js').Notice} */ notice) => ({ kind: 'notice', text: [noticeText(notice, emails)], href: '#/account', act: 'Your account', weight: 2 })),
      ...ofCredentials(looked), ...ofIntegrations(integrations?.rows ?? []), ...ofPeople(accounts?.rows ?? []), ...ofReceivers(receivers),
      ...(namespaces?.rows ?? []).filter(({ frozen }) => frozen).map(({ namespace }) => concern('frozen', [h('strong', null, namespace), ' is frozen: jobs that use it are refused.'], '#/namespaces', 'Thaw it', 3)),
    ].sort((one, other) => one.weight - other.weight);
    return [
      isNew && this.#steps(credentials.rows, integrations?.rows ?? []),
      attention(concerns),
      credentials.partial && h('p', { class: 'hint' }, `Forgotten and unused credentials are looked for among the newest ${LOOKED_THROUGH.toLocaleString('en')}; expired, expiring and failing ones among all.`),
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
      [false, 'Run the job', ['The lines to paste are shown with the token', token && session.isAdmin() ? [', and again under ', h('a', { href: `#/integrations${query({ lines: token.id })}` }, token.name)] : [], '. Its first use appears here.'].flat()],
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
 * @param {string} href
 * @param {string} act
 * @param {number} weight the smaller, the more urgent
 * @returns {Concern}
 */
function concern(kind, text, href, act, weight) {
  return { kind, text, href, act, weight };
}

/** @param {Concern[]} concerns */
function attention(concerns) {
  if (!concerns.length) return section('What needs attention', h('p', { class: 'note good' }, 'Nothing: no credential fails or expires within 30 days, and nobody waits for you.'));
  return section('What needs attention', h('ul', { class: 'concerns' }, concerns.map(({ kind, text, href, act, weight }) => h('li', null,
    badge(kind, weight <= 1 ? 'bad' : weight <= 3 ? 'warn' : 'plain'), h('span', null, text), h('a', { href }, act)))));
}

/**
 * @param {Credential[]} rows
 * @returns {Concern[]}
 */
function ofCredentials(rows) {
  const name = (/** @type {Credential} */ row) => [h('strong', null, row.namespace), ` (${[TYPE_NAMES[row.type], place(row)].filter(Boolean).join(', ')})`];
  const ends = (/** @type {Credential} */ { expires_at: at }) => at ? Date.parse(at) - Date.now() : Infinity;
  /** @type {[string, number, string, string, (row: Credential) => boolean, (row: Credential) => import('./dom.js').Child[], (row: Credential) => string][]} */
  const kinds = [
    ['expired', 0, 'Replace it', 'health=expired', (row) => ends(row) <= 0, (row) => [' expired ', relative(row.expires_at ?? ''), '.'], ({ id }) => `#/credentials/${id}/replace`],
    ['failing', 1, 'See why', 'health=failing', ({ health }) => health.state === 'failing', ({ health }) => [` is not accepted by its storage provider${health.reason ? `: ${health.reason}` : ''}.`], ({ id }) => `#/credentials/${id}`],
    ['expiring', 2, 'Rotate it', 'within=30', (row) => ends(row) > 0 && ends(row) < AHEAD * DAY, (row) => [' expires ', relative(row.expires_at ?? ''), ', on ', day(row.expires_at, ''), '.'], ({ id }) => `#/credentials/${id}/replace`],
    ['staged', 3, 'Go on', 'use=staged', ({ staged_version: staged, updated_at: at }) => Boolean(staged) && Date.now() - Date.parse(at) > FORGOTTEN * DAY, (row) => [` has version ${row.staged_version} staged, unchanged since `, relative(row.updated_at), '.'], ({ id }) => `#/credentials/${id}/rotate`],
    ['unused', 5, 'Look', 'use=unused', unused, (row) => [row.last_activated_at ? ` was last used ${relative(row.last_activated_at)}.` : ` has not been used in ${UNUSED_DAYS} days.`], ({ id }) => `#/credentials/${id}`],
  ];
  return kinds.flatMap(([kind, weight, act, filter, is, text, href]) => {
    const found = session.mayWrite() || kind === 'failing' || kind.startsWith('expir') ? rows.filter(is) : [];
    const listed = found.slice(0, found.length > EACH + 1 ? EACH : found.length).map((row) => concern(kind, [...name(row), ...text(row)], session.mayWrite() ? href(row) : `#/credentials/${row.id}`, session.mayWrite() ? act : 'Look', weight));
    const more = found.length - listed.length;
    return more ? [...listed, concern(kind, [`${count(more, 'more credential')}.`], `#/credentials?${filter}`, 'List all', weight)] : listed;
  });
}

/**
 * @param {Integration[]} rows
 * @returns {Concern[]}
 */
function ofIntegrations(rows) {
  return rows.flatMap(({ name, expires_at: at, state }) => {
    const left = at && state === 'active' ? Date.parse(at) - Date.now() : Infinity;
    if (left > AHEAD * DAY) return [];
    return [concern(left <= 0 ? 'expired' : 'expiring', ['The integration ', h('strong', null, name), left <= 0 ? ' has expired: its jobs are refused.' : ` expires ${relative(at ?? '')}: its jobs are refused then.`], '#/integrations', 'Change its expiry', left <= 0 ? 0 : 2)];
  });
}

/**
 * @param {Account[]} rows
 * @returns {Concern[]}
 */
function ofPeople(rows) {
  return rows.flatMap(({ email, state, locked, invitation_expires_at: at }) => {
    const who = h('strong', null, email);
    if (locked) return [concern('locked', [who, ' may be refused at login after failed attempts.'], '#/accounts', 'Look', 3)];
    if (state !== 'invited' && state !== 're-enrolling') return [];
    const over = at ? Date.parse(at) <= Date.now() : true;
    return [concern('waiting', [who, state === 'invited' ? ' is invited and has not enrolled' : ' has to enrol again', at && (over ? '; the code has expired.' : `; the code expires ${relative(at)}.`)], '#/accounts', over ? 'Invite again' : 'Look', 4)];
  });
}

/**
 * @param {import('./api.js').Receiver[]} rows
 * @returns {Concern[]}
 */
function ofReceivers(rows) {
  return rows.filter(({ state, last_error: error }) => state === 'failing' || (state === 'disabled' && error)).map(({ url, to, state }) =>
    concern('receiver', ['The receiver ', h('strong', null, url ?? to), state === 'failing' ? ' could not be told for a day: it learns of nothing.' : ' wants no more, or belongs to nobody any more.'], '#/receivers', 'Look', 2));
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
  return section('Activations of the last 30 days', chart,
    h('p', { class: 'hint' }, `${count(total, 'activation')}${partial ? ' at least' : ''}`, latest ? ['; the last ', time(latest.at), latest.namespace ? ` of ${latest.namespace}` : ''] : [], '. ', h('a', { href: `#/audit${query({ action: 'namespace.activated' })}` }, 'All of them')));
}

customElements.define('ov-overview', Overview);
