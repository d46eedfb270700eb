// Who may still use a version of a credential. The server counts all activations; here they are only sorted.

/** @typedef {import('../parts/api.js').Holder} Holder */

/**
 * The jobs that may use another version than the current one, and until when, the last to end first.
 * @param {Holder[]} holders
 * @returns {{job: string, version: number, until: string}[]}
 */
export function waiting(holders) {
  return holders
    .flatMap(({ integration: job, version, current, held_until: until }) =>
      current || !until ? [] : [{ job, version, until }],
    )
    .sort((one, other) => other.until.localeCompare(one.until));
}

/**
 * The jobs of a credential: whether each used the current version, and which other one it may use until when.
 * @param {Holder[]} holders
 * @returns {{job: string, moved: boolean, waits?: {version: number, until: string}}[]}
 */
export function jobs(holders) {
  const open = waiting(holders);
  return [...new Set(holders.map(({ integration }) => integration))].map((job) => ({
    job,
    moved: holders.some(({ integration, current }) => integration === job && current),
    waits: open.find((one) => one.job === job),
  }));
}

/**
 * The jobs that used the current version and another one before: those that a rotation moved.
 * @param {Holder[]} holders
 */
export function moved(holders) {
  const used = (/** @type {boolean} */ current) =>
    new Set(holders.filter((one) => one.current === current).map(({ integration }) => integration));
  return [...used(true)].filter((job) => used(false).has(job));
}

/**
 * How often each job used a credential, and when last, the last one first.
 * @param {Holder[]} holders
 */
export function users(holders) {
  /** @type {Map<string, {job: string, runs: number, last: string}>} */
  const found = new Map();
  for (const { integration: job, activations, last_activated_at: last } of holders) {
    const one = found.get(job);
    found.set(job, {
      job,
      runs: activations + (one?.runs ?? 0),
      last: one && one.last > last ? one.last : last,
    });
  }
  return [...found.values()].sort((one, other) => other.last.localeCompare(one.last));
}
