// The activity of a credential: for admins from the audit log, for others from its versions and uses.

import { call, query } from './api.js';
import { h } from './dom.js';
import { exactTime } from './parts.js';
import * as session from './session.js';
import { Names, sentence } from './words.js';
import { merged, mergedUses } from '../rules/runs.js';

/**
 * @typedef {import('./api.js').Credential} Credential
 * @typedef {import('./api.js').Version} Version
 * @typedef {import('./api.js').AuditEntry} AuditEntry
 * @typedef {{at: string, text: import('./dom.js').Child | import('./dom.js').Child[]}} Told
 */

/** Entries that the activity is made of. */
const STORY = '200';
/** Entries that tell nothing beside others. */
const LEFT_OUT = ['credential.shown', 'activation.started', 'activation.renewal-started'];

/**
 * @param {Credential} credential
 * @param {Version[]} versions
 * @param {() => void} loadAgain called if the server has not recorded the activity yet
 */
export async function storyPanel(credential, versions, loadAgain) {
  let events = session.isAdmin() ? await audited(credential) : [];
  // The audit log contains an entry about a second after its cause.
  if (session.isAdmin() && !events.length) loadAgain();
  if (!events.length) events = await known(credential, versions);
  return [
    h(
      'ol',
      { class: 'story' },
      events.map(({ at, text }) => h('li', null, at && exactTime(at), h('p', null, text))),
    ),
  ];
}

/**
 * @param {Credential} credential
 * @returns {Promise<Told[]>} newest first
 */
async function audited({ id, namespace, created_at: created }) {
  const actions = ['namespace.frozen', 'namespace.thawed'];
  const [{ body, next }, { body: freezes }, names] = await Promise.all([
    call('GET', `/audit${query({ subject: id, limit: STORY })}`),
    call('GET', `/audit${query({ namespace, action: actions, limit: '50' })}`),
    Names.load({ credentials: false }),
  ]);
  const since = next ? body.at(-1).at : created;
  /** @type {AuditEntry[]} */
  const entries = [...body, ...freezes.filter((/** @type {AuditEntry} */ { at }) => at >= since)];
  if (!body.length) return [];
  entries.sort((one, other) => `${other.at} ${other.id}`.localeCompare(`${one.at} ${one.id}`));
  const listed = merged(entries.filter(({ action }) => !LEFT_OUT.includes(action)));
  return [
    ...listed.map((entry) => ({ at: entry.at, text: sentence(entry, names, { without: id }) })),
    ...(next ? [{ at: '', text: h('a', { href: `#/audit${query({ subject: id })}` }, 'Earlier entries') }] : []),
  ];
}

/**
 * @param {Credential} credential
 * @param {Version[]} versions
 * @returns {Promise<Told[]>} newest first
 */
async function known({ id, created_at: created, last_activated_at: last }, versions) {
  /** @type {import('./api.js').Use[]} */
  const uses = session.mayWrite()
    ? (await call('GET', `/organization-vault/${id}/activations?limit=${STORY}`)).body
    : [];
  const events = [
    ...mergedUses(uses).map(({ integration, at, purpose, count: times }) => ({
      at,
      text: `${integration} used it${times > 1 ? `, ${times}×` : ''}${purpose ? `, for “${purpose}”` : ''}.`,
    })),
    ...versions.flatMap(({ version, created_at: at, health }) => [
      { at, text: version === 1 ? 'It was saved.' : `Version ${version} was saved.` },
      ...(health?.checked_at
        ? [
            {
              at: health.checked_at,
              text: `Version ${version} was checked: ${health.state === 'healthy' ? 'passed' : 'failed'}.`,
            },
          ]
        : []),
    ]),
    ...(last && !uses.length ? [{ at: last, text: 'A job used it last.' }] : []),
    ...(versions.some(({ version }) => version === 1) ? [] : [{ at: created, text: 'It was saved.' }]),
  ];
  return events.sort((one, other) => other.at.localeCompare(one.at));
}
