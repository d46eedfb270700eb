// Parses what people have at hand: profiles, environments, rclone sections, JSON of cloud tools, connection
// strings, key files, links.

/** @typedef {{type: import('./api.js').CredentialType, values: Record<string, string>, source: string}} Recognised */

/** Names in environments, profiles and rclone sections, in lower case, and the field that each fills. */
/** @type {Record<string, string>} */
const S3 = {
  aws_access_key_id: 'access_key_id', aws_secret_access_key: 'secret_access_key', aws_session_token: 'session_token',
  aws_security_token: 'session_token', access_key_id: 'access_key_id', secret_access_key: 'secret_access_key',
  session_token: 'session_token', aws_region: 'region', aws_default_region: 'region', region: 'region',
  aws_endpoint_url: 'endpoint', aws_endpoint_url_s3: 'endpoint', endpoint_url: 'endpoint', endpoint: 'endpoint',
  aws_role_arn: 'role_arn', role_arn: 'role_arn', external_id: 'external_id', bucket: 'bucket', aws_bucket: 'bucket',
  aws_s3_bucket: 'bucket', s3_bucket: 'bucket', force_path_style: 'path_style_access', path_style_access: 'path_style_access',
  key_prefix: 'key_prefix',
};
/** @type {Record<string, string>} */
const AZURE = {
  azure_tenant_id: 'tenant_id', azure_client_id: 'client_id', azure_client_secret: 'client_secret', arm_tenant_id: 'tenant_id',
  arm_client_id: 'client_id', arm_client_secret: 'client_secret', tenant: 'tenant_id', tenantid: 'tenant_id', tenant_id: 'tenant_id',
  appid: 'client_id', clientid: 'client_id', client_id: 'client_id', password: 'client_secret', clientsecret: 'client_secret',
  client_secret: 'client_secret', azure_storage_connection_string: 'connection_string', connection_string: 'connection_string',
  connectionstring: 'connection_string', container: 'container',
};

/**
 * What `text` holds, if it is of a known form.
 * @param {string} text
 * @returns {Recognised | null}
 */
export function recognise(text) {
  const trimmed = text.trim();
  if (!trimmed) return null;
  if (trimmed.startsWith('{')) return ofJson(trimmed);
  if (!trimmed.includes('\n')) {
    const bucket = /^(s3|gs):\/\/([^/\s]+)\/?(\S*)$/.exec(trimmed);
    if (bucket) {
      const values = named({ bucket: bucket[2], key_prefix: bucket[3] });
      return { type: bucket[1] === 's3' ? 's3' : 'gcs', values, source: 'a bucket address' };
    }
    if (/^https?:\/\/\S+$/.test(trimmed)) return { type: 'direct-link', values: { url: trimmed }, source: 'a link' };
    if (isConnectionString(trimmed)) return { type: 'azure_identity', values: { connection_string: trimmed }, source: 'a connection string' };
  }
  return ofLines(trimmed);
}

/** @param {string} text */
function isConnectionString(text) {
  return /(^|;)\s*(AccountName|AccountKey|BlobEndpoint|SharedAccessSignature)=/i.test(text) && text.includes(';');
}

/** @param {Record<string, any>} values */
function named(values) {
  return /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === 'string' && value !== '')));
}

/**
 * @param {string} text
 * @returns {Recognised | null}
 */
function ofJson(text) {
  /** @type {any} */
  let object;
  try {
    object = JSON.parse(text);
  } catch {
    return null;
  }
  if (object.type === 'service_account') return { type: 'gcs', values: { service_account_key: text }, source: 'a Google Cloud key file' };
  const aws = object.Credentials ?? object.AccessKey ?? object;
  if (aws?.AccessKeyId) {
    return { type: 's3', values: named({ access_key_id: aws.AccessKeyId, secret_access_key: aws.SecretAccessKey, session_token: aws.SessionToken }), source: 'an AWS key' };
  }
  const azure = translate(Object.entries(object), AZURE);
  return azure.client_id || azure.connection_string ? { type: 'azure_identity', values: azure, source: 'an Azure identity' } : null;
}

/**
 * @param {[string, any][]} entries
 * @param {Record<string, string>} names
 */
function translate(entries, names) {
  const pairs = entries.map(([name, value]) => [names[name.toLowerCase().trim()] ?? '', value]);
  return named(Object.fromEntries(pairs.filter(([name]) => name !== '')));
}

/**
 * @param {string} text
 * @returns {Recognised | null}
 */
function ofLines(text) {
  /** @type {{name: string, entries: [string, string][]}[]} */
  const sections = [{ name: '', entries: [] }];
  for (const line of text.split('\n')) {
    const section = /^\s*\[\s*([^\]]+?)\s*\]\s*$/.exec(line);
    if (section) {
      sections.push({ name: section[1] ?? '', entries: [] });
      continue;
    }
    const pair = /^\s*(?:export\s+|set\s+|\$env:)?([A-Za-z_][A-Za-z0-9_]*)\s*[=:]\s*(.*?)\s*;?\s*$/.exec(line);
    if (pair?.[1] && pair[2] !== undefined && !/^[#;]/.test(line.trim())) {
      // A connection string ends in no semicolon of a shell's.
      const value = pair[2].replace(/^(["'])(.*)\1$/, '$2').trim();
      sections.at(-1)?.entries.push([pair[1], value]);
    }
  }
  for (const { name, entries } of sections) {
    const found = ofSection(name, entries);
    if (found) return found;
  }
  return null;
}

/**
 * @param {string} name
 * @param {[string, string][]} entries
 * @returns {Recognised | null}
 */
function ofSection(name, entries) {
  const raw = Object.fromEntries(entries.map(([key, value]) => [key.toLowerCase(), value]));
  const where = name ? ` [${name}]` : '';
  if (raw.type === 'google cloud storage' || raw.service_account_credentials) {
    return { type: 'gcs', values: named({ service_account_key: raw.service_account_credentials, bucket: raw.bucket }), source: `the rclone section${where}` };
  }
  const azure = translate(entries, AZURE);
  if (raw.type === 'azureblob') {
    if (raw.account && raw.key) {
      azure.connection_string = `DefaultEndpointsProtocol=https;AccountName=${raw.account};AccountKey=${raw.key};EndpointSuffix=core.windows.net`;
    }
    return { type: 'azure_identity', values: azure, source: `the rclone section${where}` };
  }
  const s3 = translate(entries, S3);
  if (s3.access_key_id || s3.secret_access_key) {
    const source = raw.type === 's3' ? 'the rclone section' : name ? 'the AWS profile' : 'AWS variables';
    return { type: 's3', values: s3, source: source + where };
  }
  return azure.client_id || azure.connection_string ? { type: 'azure_identity', values: azure, source: 'Azure variables' } : null;
}
