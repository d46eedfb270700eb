// What a credential is and needs: its kind, its state, and whether filters match it.

import { isUnreachable } from './reasons.js';

/** @typedef {import('../parts/api.js').Credential} Credential */

/** @type {Record<import('../parts/api.js').CredentialType, string>} */
export const TYPE_NAMES = {
  s3: 'S3 bucket',
  azure_identity: 'Azure identity',
  gcs: 'Google Cloud Storage',
  'direct-link': 'Direct link',
  's3-federated': 'S3 bucket, keyless',
  'azure-federated': 'Azure container, keyless',
  'gcs-federated': 'Google Cloud Storage, keyless',
};

/**
 * Whether credentials of a type contain no secret.
 * @param {import('../parts/api.js').CredentialType} type
 */
export const isKeyless = (type) => type.endsWith('-federated');

/** The order of the states, the most urgent first. */
export const STATES = [
  'damaged',
  'expired',
  'failing',
  'expiring',
  'frozen',
  'staged',
  'rotating',
  'unchecked',
  'healthy',
];
/** After how many days without use a credential counts as unused. */
export const UNUSED_DAYS = 90;

/**
 * Where a credential leads, in a few words.
 * @param {Credential} credential
 */
export function place({ information = {} }) {
  if (Array.isArray(information.bucket)) return `${information.bucket[0]} + ${information.bucket.length - 1}`;
  const text =
    information.bucket ??
    information.host ??
    [information.account_name, information.container].filter(Boolean).join(' / ');
  return String(text || information.tenant_id || '');
}

/**
 * Whether no job has used a credential for long.
 * @param {Credential} credential
 * @param {number} [now]
 */
export function unused({ last_activated_at: used, created_at: created }, now = Date.now()) {
  return now - Date.parse(used ?? created) > UNUSED_DAYS * 86_400_000;
}

/**
 * The most urgent state of a credential.
 * @param {Credential} row
 * @param {Set<string>} frozen namespaces
 */
export function stateOf(
  { damaged, health: { state }, namespace, staged_version: staged, previous_version: previous },
  frozen,
) {
  if (damaged) return 'damaged';
  if (state === 'expired' || state === 'failing' || state === 'expiring') return state;
  return frozen.has(namespace) ? 'frozen' : staged ? 'staged' : previous ? 'rotating' : state;
}

/**
 * Whether a credential matches the filters.
 * @param {Credential} row
 * @param {Record<string, string>} filters
 */
export function fits(row, { namespace = '', type, label, health, within, use }) {
  const [name = '', ...value] = (label ?? '').split(':');
  return (
    row.namespace.toLowerCase().includes(namespace.toLowerCase()) &&
    (!type || row.type === type) &&
    (!label || row.labels?.[name] === value.join(':')) &&
    (!health ||
      (health === 'unreachable'
        ? isUnreachable(row.health)
        : row.health.state === health && !isUnreachable(row.health))) &&
    (!within ||
      (row.expires_at !== undefined && Date.parse(row.expires_at) < Date.now() + Number(within) * 86_400_000)) &&
    (use !== 'unused' || unused(row)) &&
    (use !== 'rotation' || row.staged_version !== undefined || row.previous_version !== undefined)
  );
}
