// How a key is disabled at its provider, which the vault cannot do.

import { h } from './dom.js';
import { copyButton } from './copy.js';
import { isKeyless } from '../rules/credentials.js';

/** @typedef {import('./api.js').Credential} Credential */

/**
 * How the key of a version is disabled at its provider.
 * @param {Credential} credential
 * @param {Record<string, any>} old
 */
export function disabling({ type, information = {} }, old) {
  const key = String(old.access_key_id ?? old.private_key_id ?? old.client_id ?? '').replace('…', '');
  const { command, hint } = commandOf(type, information, old, key);
  const named = key
    ? ['the key that ends in ', h('code', null, key)]
    : ['the key with the fingerprint ', h('code', null, old.fingerprint ?? '')];
  if (isKeyless(type))
    return [h('p', null, 'It contains no key. Remove trust at the provider that the new data does not need.')];
  if (type === 'direct-link')
    return [h('p', null, 'Ask the issuer of the link to revoke the old one. A signed link expires by itself.')];
  if (!command) return [h('p', null, 'Disable ', ...named, ' at ', h('code', null, information.endpoint), '.')];
  return [
    h('p', null, 'Disable ', ...named, ':'),
    h('div', { class: 'secret' }, h('code', null, command), copyButton(command, 'the command')),
    h('p', { class: 'hint' }, hint),
  ];
}

/**
 * The command that disables a key, if its provider has one.
 * @param {Credential['type']} type
 * @param {Record<string, any>} information
 * @param {Record<string, any>} old
 * @param {string} key the end of its ID. The server returns only this, so the command finds the rest.
 * @returns {{command?: string, hint?: string}}
 */
function commandOf(type, information, old, key) {
  const account = String(old.client_email ?? 'SERVICE_ACCOUNT');
  if (type === 's3' && (!information.endpoint || /amazonaws\.com/.test(information.endpoint)))
    return {
      command: `aws iam update-access-key --status Inactive --access-key-id "$(aws iam list-access-keys --output text --query "AccessKeyMetadata[?ends_with(AccessKeyId, '${key}')].AccessKeyId")"`,
      hint: 'Run it as the user of the key, or add --user-name USER to both parts. An inactive key can be activated again. Delete it later.',
    };
  if (type === 'azure_identity')
    return {
      command: `az ad app credential delete --id ${old.client_id ?? 'CLIENT_ID'} --key-id OLD_SECRET_ID`,
      hint: 'az ad app credential list shows the ID of each secret with its end date. Renew the account key of the connection string separately.',
    };
  if (type === 'gcs')
    return {
      command: `gcloud iam service-accounts keys disable --iam-account ${account} "$(gcloud iam service-accounts keys list --iam-account ${account} --filter 'name ~ ${key}$' --format 'value(name.basename())')"`,
      hint: 'A disabled key can be enabled again.',
    };
  return {};
}
