// What to do about each reason for which a check fails, in the words of the server's own reports.

/** @type {Record<string, string>} */
export const REMEDIES = {
  'unknown-key':
    'The storage provider does not know this key: check that it was not deleted or rotated there, and save the current one.',
  'signature-mismatch': 'The secret does not belong to this key: save both again, exactly as they were issued.',
  'clock-skew':
    "This server's clock and the storage provider's differ too much: synchronize this server's clock (NTP).",
  'wrong-region': "The bucket is in another region: save the credential with the bucket's region.",
  'region-missing': "No region is saved, so tools use a default: save the credential with the bucket's region.",
  'path-style-needed': 'The endpoint has no host name for the bucket: save the credential with path_style_access true.',
  'endpoint-has-bucket':
    'The endpoint contains the bucket, which tools add again: save the endpoint without the bucket.',
  'prefix-open':
    'key_prefix does not end with a slash, so it also covers other names with the same start (in covers in2/a): save it with a final slash, unless this is intended.',
  'bucket-missing': 'The bucket or container does not exist: check its name, or create it.',
  'object-missing': 'The link leads to no object: request a new one from its issuer.',
  'denied':
    "The storage provider denies this: grant the key's owner this operation on this bucket and prefix, and the right to assume the role if one is saved.",
  'tenant-unknown': 'The directory has no such tenant: check tenant_id.',
  'unknown-cloud':
    "The storage account's cloud is unknown, so the application's secret was not sent: save connection_string with the EndpointSuffix of a supported cloud, such as core.windows.net, or omit the application.",
  'foreign-token-uri':
    'token_uri in the key file does not belong to its universe_domain, so nothing was sent: save the key file exactly as it was issued.',
  'secret-expired': 'The secret has expired: create a new one and save it.',
  'token-expired': 'The session token has expired: save long-lived keys, with role_arn if a role is needed.',
  'link-expired': 'The link has expired: request a new one from its issuer.',
  'expires-too-soon': 'The credential expires before the time in until: renew it, or run the job earlier.',
  'expiry-unknown': 'The credential does not contain its expiry: request it from its issuer.',
  'excess-rights':
    'The credential has more rights than requested: restrict it to this bucket, this prefix and these operations.',
  'tls': "The TLS connection failed: check the endpoint's certificate and host name.",
  'dns': "The host name cannot be resolved: check the endpoint, and this server's name servers.",
  'blocked-egress':
    'The address is not permitted: an operator can allow its network, or behind an outgoing proxy its name, with --allow-egress.',
  'proxy-unreachable': 'This server cannot reach its outgoing proxy. The operator must check --egress-proxy.',
  'proxy-credentials':
    "The outgoing proxy refuses this server's credentials. The operator must check egress-proxy-credentials.",
  'proxy-refused': 'The outgoing proxy does not permit this host or port. Its operator must permit them.',
  'unreachable': "No response in time: check the endpoint, the firewall and this server's name servers.",
  'redirected': 'The address redirects, and redirects are not followed: save the address that it leads to.',
  'store-error': 'The storage provider reports an internal error: retry later.',
  'unexpected-answer': 'The response is not from a storage provider of this type: check the endpoint.',
  'nothing-to-try': 'No object exists to test this with: add one under the prefix, and check again.',
  'not-for-type': 'Credentials of this type cannot do this: use another type.',
  'earlier-failed': 'Skipped because an earlier check failed: fix that one first.',
  'not-configured': 'This server is not configured to connect to storage: contact its operator.',
  'type-has-none': 'Credentials of this type have no short-lived form: use vend raw or prefer-short.',
  'no-role':
    'The credential has no role_arn, and AWS issues short-lived credentials for roles only: save it with role_arn (or with the endpoint or sts_endpoint of another store), or use vend prefer-short.',
  'no-application':
    'The credential has no application, so no short-lived credential can be issued: save it with tenant_id, client_id and client_secret, or use vend prefer-short.',
  'no-container':
    'The credential has no container, so a short-lived credential would have all rights of the application: save it with container, or use vend prefer-short.',
  'no-account':
    "The connection string does not contain the storage account's name, so no short-lived credential can be issued: save it with AccountName, or use vend prefer-short.",
  'too-many-buckets':
    'A short-lived credential cannot be limited to this number of buckets: save fewer buckets in one credential, or use vend prefer-short.',
  'policy-too-large':
    "The session's policy and tags are too large for AWS: save fewer buckets or a shorter key_prefix in one credential. The operator can omit --session-tags, which shortens the request.",
  'directory-bucket':
    'The server cannot check S3 Express directory buckets (--x-s3) or limit credentials to them: use vend raw, and test the credential with the tool of the job.',
  'lifetime':
    "The storage provider issues no short-lived credential for this lifetime: request a shorter one, or increase the role's maximum session duration.",
  'trust-missing':
    "The provider does not accept this credential's subject. Apply the steps that `orgvault credential show ID --trust` prints.",
  'trust-open':
    'The provider accepts the tokens of any organization. Restrict its trust to the subject that `orgvault credential show ID --trust` prints.',
  'issuer-unreachable':
    "The provider cannot read this server's public keys. The operator can run `orgvault federation status`.",
  'issuer-not-trusted':
    "The provider does not accept this server's issuer or audience. Apply the steps that `orgvault credential show ID --trust` prints.",
  'federation-off': 'This server has no federation issuer. The operator must set --federation-issuer.',
  'federation-not-ready': 'This server has no current signing key. The operator can run `orgvault federation status`.',
};
