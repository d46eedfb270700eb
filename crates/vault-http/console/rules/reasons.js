// Why checks fail, in a few words.

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
 * Whether a check could not reach a verdict on the key.
 * @param {{reason?: string}} health
 */
export function isUnreachable({ reason }) {
  return reason !== undefined && NOT_CHECKED.has(reason);
}
