// Which integrations use what, how often, how regularly and until when. Nothing here needs a page.

/**
 * @typedef {import('./api.js').AuditEntry} AuditEntry
 * @typedef {object} Use activations of a namespace by an integration
 * @property {string} integration its id
 * @property {string} namespace
 * @property {number} count
 * @property {number} last when the latest one was
 * @property {Map<number, number>} days the first activation of each day with one, by the start of the day
 */

const DAY = 86_400_000;
/** On so many days an integration must have used a namespace to be considered regular. */
const REGULAR = 4;
/** So long after its usual time a regular use is missed, in days and in intervals. */
const MISSED = 2;

/**
 * The start of a day in this time zone.
 * @param {number} at
 */
export function startOfDay(at) {
  return new Date(at).setHours(0, 0, 0, 0);
}

/**
 * The uses in `entries`, by integration and namespace.
 * @param {AuditEntry[]} entries
 * @returns {Use[]}
 */
export function usesOf(entries) {
  /** @type {Map<string, Use>} */
  const found = new Map();
  for (const { action, integration, namespace, at, count = 1 } of entries) {
    if (action !== 'namespace.activated' || !integration || !namespace) continue;
    const time = Date.parse(at);
    const key = `${integration} ${namespace}`;
    const use = found.get(key) ?? { integration, namespace, count: 0, last: 0, days: new Map() };
    found.set(key, use);
    use.count += count;
    use.last = Math.max(use.last, time);
    const day = startOfDay(time);
    use.days.set(day, Math.min(use.days.get(day) ?? time, time));
  }
  return [...found.values()];
}

/**
 * The interval of a regular use in days, or `null`.
 * @param {Use} use
 */
function interval({ days }) {
  const starts = [...days.keys()].sort((one, other) => one - other);
  if (starts.length < REGULAR) return null;
  const gaps = starts.slice(1).map((start, index) => Math.round((start - (starts[index] ?? 0)) / DAY)).sort((one, other) => one - other);
  const typical = gaps[Math.floor(gaps.length / 2)] ?? 0;
  return (gaps.at(-1) ?? 0) <= 2 * typical ? typical : null;
}

/**
 * How often a namespace is used: "daily 02:00", "weekly", "27× in 30 days".
 * @param {Use} use
 * @param {number} period the days that were searched
 */
export function rhythm(use, period) {
  const every = interval(use);
  if (every === null) return `${use.count.toLocaleString('en')}× in ${period} days`;
  const name = every === 1 ? 'daily' : every === 7 ? 'weekly' : `every ${every} days`;
  const clocks = [...use.days.values()].map((at) => new Date(at).toTimeString().slice(0, 5));
  const clock = clocks[0] ?? '';
  return clocks.every((one) => one === clock) ? `${name} ${clock}` : name;
}

/**
 * Whether a regular use has stopped.
 * @param {Use} use
 * @param {number} [now]
 */
export function isSilent(use, now = Date.now()) {
  const every = interval(use);
  return every !== null && startOfDay(now) - startOfDay(use.last) > MISSED * every * DAY;
}

/**
 * The integrations that may still use an older version: each with the latest time at which one of its activations expires.
 * @param {import('./api.js').Use[]} uses
 * @param {number} current the version that is issued now
 * @returns {{integration: string, at: string, until: string}[]}
 */
export function holders(uses, current) {
  /** @type {Map<string, {integration: string, at: string, until: string}>} */
  const found = new Map();
  for (const { integration, at, version, expires_at: until, ended_at: ended } of uses) {
    if (version >= current || ended || Date.parse(until) <= Date.now()) continue;
    const known = found.get(integration);
    if (!known || known.until < until) found.set(integration, { integration, at, until });
  }
  return [...found.values()];
}
