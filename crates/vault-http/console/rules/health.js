// The health of a credential in words: what the last check found, and what to do.

import { isUnreachable, reasonText } from './reasons.js';
import { REMEDIES } from './remedies.js';

/** @typedef {import('../parts/api.js').Health} Health */

/**
 * The result of a check as a sentence, with what to do.
 * @param {Health} health
 */
export function healthText(health) {
  if (!health.reason && health.checked_at) return 'Works.';
  const text = reasonText(health.reason);
  // A remedy is "what failed: what to do" or "What failed. What to do"; what failed is said already. The steps of the command are on the page too.
  const remedy = (REMEDIES[health.reason ?? ''] ?? '')
    .replace(/^.*?[:.] /, '')
    .replace(/ that `orgvault credential show( ID)? --trust` prints/, ' under “Provider trust”');
  return `${isUnreachable(health) ? 'Could not be checked' : 'Does not work'}: ${text}.${remedy && ` ${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`}`;
}
