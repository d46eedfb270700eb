// The health of a credential in words: what the last check found, and what to do.

import { h } from './dom.js';
import { badge } from './parts.js';
import { REMEDIES } from '../rules/remedies.js';

/** @typedef {import('./api.js').Health} Health */

/** The reasons of failed checks in a few words. @type {Record<string, string>} */
const REASONS = {
  'unknown-key': 'unknown key',
  'signature-mismatch': 'the secret does not match the key',
  'clock-skew': 'clocks differ too much',
  'wrong-region': 'wrong region',
  'region-missing': 'no region',
  'path-style-needed': 'needs path-style access',
  'prefix-open': 'the prefix has no final slash',
  'bucket-missing': 'the bucket does not exist',
  'object-missing': 'the link leads to no object',
  denied: 'access denied',
  'tenant-unknown': 'unknown tenant',
  'secret-expired': 'the secret has expired',
  'token-expired': 'the session token has expired',
  'link-expired': 'the link has expired',
  tls: 'the TLS connection failed',
  dns: 'the host name does not resolve',
  'blocked-egress': 'the server may not connect to this address',
  'proxy-unreachable': 'the outgoing proxy does not respond',
  'proxy-credentials': 'the outgoing proxy refuses the server’s credentials',
  'proxy-refused': 'the outgoing proxy does not permit this host',
  unreachable: 'no response in time',
  redirected: 'the address redirects',
  'store-error': 'the storage provider reports an internal error',
  'unexpected-answer': 'the response is not from a storage provider',
  'not-configured': 'the server is not configured to connect to storage',
  'trust-missing': 'the provider does not trust this credential',
  'trust-open': 'the provider trusts any subject',
  'issuer-unreachable': 'the provider cannot read this server’s public keys',
  'issuer-not-trusted': 'the provider does not trust this server',
  'federation-off': 'this server has no federation issuer',
  'federation-not-ready': 'this server has no current signing key',
};
/** Reasons that say nothing about the key: the check itself did not get through. */
const NOT_CHECKED = new Set([
  'clock-skew',
  'tls',
  'dns',
  'blocked-egress',
  'proxy-unreachable',
  'proxy-credentials',
  'proxy-refused',
  'unreachable',
  'redirected',
  'store-error',
  'unexpected-answer',
  'not-configured',
]);

/** @param {string | undefined} reason */
export function reasonText(reason) {
  return reason ? (REASONS[reason] ?? reason.replaceAll('-', ' ')) : 'no reason given';
}

/**
 * Whether the last check could not reach a verdict on the key.
 * @param {Health} health
 */
export function isUnreachable({ reason }) {
  return reason !== undefined && NOT_CHECKED.has(reason);
}

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
