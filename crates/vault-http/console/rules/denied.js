// Jobs that the vault denied credentials. The audit log has one action for each reason.

/**
 * @typedef {import('../parts/api.js').AuditEntry} AuditEntry
 * @typedef {object} Denial attempts of one integration, for one namespace and reason
 * @property {string} integration its id
 * @property {string} [namespace]
 * @property {string} action
 * @property {number} count
 * @property {string} last when the last attempt was
 */

/** The days that are searched. */
export const DENIED_DAYS = 7;

/** @type {Record<string, string>} */
export const DENIED = {
  'activation.refused-outside': 'no access',
  'activation.refused-frozen': 'frozen',
  'activation.refused-token': 'its token was replaced, has expired or is disabled',
  'activation.refused-workload': 'no trust matches the workload',
  'activation.refused': 'no credentials, too many credentials or too many active runs',
  'activation.failed': 'the credentials could not be issued',
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

/** Since when denied attempts are searched. */
export function deniedSince() {
  return new Date(Date.now() - DENIED_DAYS * 86_400_000).toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * The denied attempts in a usage, by integration, namespace and reason, the latest first.
 * @param {import('../parts/api.js').NamespaceUsage} usage
 * @returns {Denial[]}
 */
export function deniedIn({ denials: counted }) {
  return counted
    .filter(({ action }) => action in DENIED)
    .map(({ integration, namespace, action, denied: count, last_denied_at: last }) => ({
      integration,
      namespace,
      action,
      count,
      last,
    }))
    .sort((one, other) => other.last.localeCompare(one.last));
}

/**
 * Whether a pattern of an integration matches a namespace.
 * @param {string[]} patterns
 * @param {string} namespace
 */
export function matches(patterns, namespace) {
  return patterns.some(
    (pattern) => pattern === namespace || (pattern.endsWith('/*') && namespace.startsWith(pattern.slice(0, -1))),
  );
}
