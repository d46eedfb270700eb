// Jobs that the vault denied credentials: found in the audit log, which has one action for each reason.

import { query } from './api.js';
import { loadAll } from './list.js';

/**
 * @typedef {import('./api.js').AuditEntry} AuditEntry
 * @typedef {object} Denial attempts of one integration, for one namespace and reason
 * @property {string} integration its id
 * @property {string} [namespace]
 * @property {string} action
 * @property {number} count
 * @property {string} last when the last attempt was
 */

/** The days that are searched. */
export const DENIED_DAYS = 7;
/** Entries that are read. */
const READ = 5000;

/** @type {Record<string, string>} */
export const DENIED = {
  'activation.refused-outside': 'no access', 'activation.refused-frozen': 'frozen', 'activation.refused-token': 'its token was replaced, has expired or is disabled',
  'activation.refused-workload': 'no trust matches the workload', 'activation.refused': 'no credentials, too many credentials or too many active runs', 'activation.failed': 'the credentials could not be issued',
};

/**
 * Entries about denied attempts, by integration, namespace and reason, the latest first.
 * @param {AuditEntry[]} entries
 * @returns {Denial[]}
 */
export function denials(entries) {
  /** @type {Map<string, Denial>} */
  const found = new Map();
  for (const { action, integration, namespace, count = 1, at } of entries) {
    if (!integration || !(action in DENIED)) continue;
    const key = [integration, namespace, action].join(' ');
    const one = found.get(key);
    if (one) {
      one.count += count;
      if (at > one.last) one.last = at;
    } else found.set(key, { integration, namespace, action, count, last: at });
  }
  return [...found.values()].sort((one, other) => other.last.localeCompare(one.last));
}

/**
 * Since when denied attempts are searched.
 * @param {number} [days]
 */
export function deniedSince(days = DENIED_DAYS) {
  return new Date(Date.now() - days * 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * The denied attempts of the last days, and whether there are more than were read.
 * @param {number} [days] those of the entries; the rows are of the last `DENIED_DAYS` days
 * @returns {Promise<{rows: Denial[], entries: AuditEntry[], partial: boolean}>}
 */
export async function loadDenials(days = DENIED_DAYS) {
  const { rows: entries, partial } = /** @type {{rows: AuditEntry[], partial: boolean}} */ (await loadAll(`/audit${query({ action: Object.keys(DENIED), since: deniedSince(days) })}`, READ));
  const lately = deniedSince();
  return { rows: denials(entries.filter(({ at }) => at >= lately)), entries, partial };
}

/**
 * Whether a pattern of an integration matches a namespace.
 * @param {string[]} patterns
 * @param {string} namespace
 */
export function matches(patterns, namespace) {
  return patterns.some((pattern) => pattern === namespace || (pattern.endsWith('/*') && namespace.startsWith(pattern.slice(0, -1))));
}
