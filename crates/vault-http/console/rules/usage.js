// How often and how regularly something is used, and until when. Nothing here needs a page.

/** The length of an hour, in milliseconds. */
const HOUR = 3_600_000;

/**
 * The start of a day in this time zone.
 * @param {number} at
 */
export function startOfDay(at) {
  return new Date(at).setHours(0, 0, 0, 0);
}

/**
 * The activations and denied attempts of each day in this time zone, by its start.
 * @param {Pick<import('../parts/api.js').NamespaceUsage, 'since' | 'activations' | 'denied'>} usage
 */
export function byDay({ since, activations, denied }) {
  /** @type {Map<number, {used: number, denied: number}>} */
  const days = new Map();
  activations.forEach((used, hour) => {
    const day = startOfDay(Date.parse(since) + hour * HOUR);
    const sum = days.get(day) ?? { used: 0, denied: 0 };
    days.set(day, { used: sum.used + used, denied: sum.denied + (denied[hour] ?? 0) });
  });
  return days;
}

/**
 * How often a namespace is used: "daily 02:00", "weekly", "27× in 30 days".
 * @param {Pick<import('../parts/api.js').NamespaceUse, 'activations' | 'every_days' | 'usual_time'>} use
 * @param {number} period the days that were counted
 * @param {number} [now]
 */
export function rhythm({ activations, every_days: every, usual_time: clock }, period, now = Date.now()) {
  if (!every) return `${activations.toLocaleString('en')}× in ${period} days`;
  const name = every === 1 ? 'daily' : every === 7 ? 'weekly' : `every ${every} days`;
  return clock
    ? `${name} ${new Date(`${new Date(now).toISOString().slice(0, 10)}T${clock}Z`).toTimeString().slice(0, 5)}`
    : name;
}
