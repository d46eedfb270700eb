// What differs between two versions of a credential. Secrets are not compared one by one: only the fingerprint shows them.

/** @typedef {import('../parts/api.js').Version} Version */

/** The names of fields in sentences. @type {Record<string, string>} */
const FIELDS = {
  access_key_id: 'access key ID',
  secret_access_key: 'secret access key',
  private_key_id: 'private key ID',
  client_id: 'client ID',
  tenant_id: 'tenant ID',
  client_email: 'service account',
  account_name: 'account',
  project_id: 'project',
  external_id: 'external ID',
  role_arn: 'role ARN',
  sts_endpoint: 'STS endpoint',
  sse_kms_key_id: 'KMS key',
  provider: 'workload identity provider',
};
/** Fields that identify a key: if one differs, the secret that belongs to it differs too. */
const KEY_IDS = ['access_key_id', 'private_key_id'];
/** The secrets that belong to such an ID. */
const KEYS = ['secret_access_key', 'service_account_key'];

/** @param {string} name */
export const fieldName = (name) => FIELDS[name] ?? name.replaceAll('_', ' ');

/** @param {unknown} value */
const text = (value) =>
  value === undefined ? 'not set' : Array.isArray(value) ? value.map(fieldName).join(', ') : String(value);

/**
 * @param {Version} before
 * @param {Version} after
 */
export function changes(before, after) {
  const [one = {}, other = {}] = [before.information, after.information];
  const same = one.fingerprint === other.fingerprint;
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => name !== 'fingerprint');
  const differing = names.filter((name) => text(one[name]) !== text(other[name]));
  /** @type {[string[], string[]]} */
  const [old, now] = [one.secrets ?? [], other.secrets ?? []];
  const both = now.filter((name) => old.includes(name));
  // Of a masked value, only the end is known.
  const masked = same ? [] : names.filter((name) => !differing.includes(name) && text(one[name]).startsWith('…'));
  // A secret differs for certain if the ID of its key does, or if it is the only field that can differ.
  const keyed = KEY_IDS.some((name) => differing.includes(name)) ? both.filter((name) => KEYS.includes(name)) : [];
  const hidden = [...both, ...masked].map(fieldName);
  const only = hidden.length > 1 ? `at least one of ${hidden.join(', ')}` : hidden.join('');
  const visible = differing.filter((name) => name !== 'secrets');
  return {
    same,
    prints: `fingerprint ${one.fingerprint} → ${other.fingerprint}`,
    changed: [
      ...visible.map(fieldName),
      ...(!same && !differing.length ? [only].filter(Boolean) : keyed.map(fieldName)),
      ...old.filter((name) => !now.includes(name)).map((name) => `${fieldName(name)} (removed)`),
      ...now.filter((name) => !old.includes(name)).map((name) => `${fieldName(name)} (added)`),
    ],
    possible: differing.length ? hidden.filter((name) => !keyed.map(fieldName).includes(name)) : [],
    unchanged: names
      .filter((name) => name !== 'secrets' && !differing.includes(name) && !masked.includes(name))
      .map(fieldName),
    differences: visible.map((name) => ({ field: fieldName(name), before: text(one[name]), after: text(other[name]) })),
  };
}
