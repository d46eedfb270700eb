// The steps of a rotation, each with its time and who did it.

import { h } from './dom.js';
import { live } from './parts.js';

/** @typedef {{at?: string, by?: string, text?: string}} Done when a step was done, by whom, or something else about it */

const STEPS = ['New key', 'Check', 'Promote', 'Wait for jobs', 'Disable the old key'];
/** The same of a keyless credential. */
const KEYLESS_STEPS = ['New data', 'Check', 'Promote', 'Wait for jobs', 'Delete the old version'];

/**
 * @param {number} now the index of the current step
 * @param {Done[]} [about] details of each step
 * @param {boolean} [unchecked] whether the new key was promoted without a check
 * @param {boolean} [keyless]
 */
export function rotationSteps(now, about = [], unchecked = false, keyless = false) {
  return h(
    'ol',
    { class: 'stepper', 'aria-label': 'Rotation' },
    (keyless ? KEYLESS_STEPS : STEPS).map((name, index) => {
      const skipped = unchecked && name === 'Check';
      const { at, by, text } = about[index] ?? {};
      return h(
        'li',
        { 'aria-current': index === now ? 'step' : null, class: index < now && !skipped ? 'done' : null },
        h('strong', null, skipped ? 'Check (skipped)' : name),
        h('span', { class: 'hint' }, skipped ? null : [at && live('relative', at), at && by && ', ', by, text]),
      );
    }),
  );
}
