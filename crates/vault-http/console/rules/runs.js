// Consecutive runs of one job are told once.

/**
 * Merges consecutive uses by the same job for the same purpose.
 * @param {import('../parts/api.js').AuditEntry[]} entries newest first
 */
export function merged(entries) {
  /** @type {import('../parts/api.js').AuditEntry[]} */
  const result = [];
  for (const entry of entries) {
    const last = result.at(-1);
    const same =
      last &&
      entry.action === 'namespace.activated' &&
      last.action === entry.action &&
      last.integration === entry.integration &&
      last.purpose === entry.purpose &&
      JSON.stringify(last.credentials) === JSON.stringify(entry.credentials);
    if (same) last.count = (last.count ?? 1) + (entry.count ?? 1);
    else result.push({ ...entry });
  }
  return result;
}

/**
 * Merges consecutive uses by the same job for the same purpose.
 * @param {import('../parts/api.js').Use[]} uses newest first
 */
export function mergedUses(uses) {
  /** @type {(import('../parts/api.js').Use & {count: number})[]} */
  const result = [];
  for (const use of uses) {
    const last = result.at(-1);
    if (last && last.integration === use.integration && last.purpose === use.purpose) last.count += 1;
    else result.push({ ...use, count: 1 });
  }
  return result;
}
