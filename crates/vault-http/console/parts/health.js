// The health of a credential as badges.

import { h } from './dom.js';
import { badge } from './parts.js';
import { isUnreachable, reasonText } from '../rules/reasons.js';

/** @typedef {import('./api.js').Health} Health */

/**
 * A credential's health as badges: its expiry if that is near, and what the last check found.
 * @param {Health} health
 */
export function healthBadge(health) {
  const { state, reason, checked_at: checked } = health;
  const sign = (/** @type {string} */ mark, /** @type {string} */ text, /** @type {string} */ kind) => {
    const made = badge(text, kind);
    made.prepend(h('span', { 'aria-hidden': 'true' }, `${mark} `));
    return made;
  };
  const expiry =
    state === 'expired' ? sign('✕', 'expired', 'bad') : state === 'expiring' ? sign('!', 'expiring', 'warn') : null;
  const result = reason
    ? isUnreachable(health)
      ? sign('!', 'unreachable', 'warn')
      : sign('✕', 'failing', 'bad')
    : state === 'expired'
      ? null
      : checked || state === 'healthy'
        ? sign('✓', 'healthy', 'good')
        : state === 'failing'
          ? sign('✕', 'failing', 'bad')
          : expiry
            ? null
            : sign('–', 'unchecked', 'plain');
  if (result && reason) result.title = reasonText(reason);
  return h('span', { class: 'badges' }, expiry, result);
}
