// Parses what people have at hand: profiles, environments, downloaded tables of keys, rclone sections, JSON of cloud
// tools, connection strings, key files, links.

/**
 * @typedef {object} Recognised
 * @property {import('./api.js').CredentialType} type
 * @property {Record<string, string>} values
 * @property {string} source what it is, for people
 * @property {string} [expiresAt] when it ends, RFC 3339
 * @property {boolean} [place] it only says where the storage is: it completes what is there
 */

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
/** Names of moments at which a key ends. */
const EXPIRY = ['expiration', 'aws_session_expiration', 'aws_credential_expiration', 'x_security_token_expires', 'expires_at'];

/**
 * What `text` holds: one entry for each profile or row in it that holds a key; none if it is of no known form.
 * @param {string} text
 * @returns {Recognised[]}
 */
export function recognise(text) {
  const trimmed = text.replace(/^\ufeff/, '').trim();
  if (!trimmed) return [];
  if (trimmed.startsWith('{')) return found(ofJson(trimmed));
  if (!trimmed.includes('\n')) {
    const bucket = /^(s3|gs):\/\/([^/\s]+)\/?(\S*)$/.exec(trimmed);
    if (bucket) {
      const values = named({ bucket: bucket[2], key_prefix: bucket[3] });
      return [{ type: bucket[1] === 's3' ? 's3' : 'gcs', values, source: 'a bucket address', place: true }];
    }
    if (/^https?:\/\/\S+$/.test(trimmed)) return [{ type: 'direct-link', values: { url: trimmed }, source: 'a link' }];
    if (isConnectionString(trimmed)) return [{ type: 'azure_identity', values: { connection_string: trimmed }, source: 'a connection string' }];
  }
  const rows = ofTable(trimmed);
  return rows.length ? rows : ofLines(trimmed);
}

/** @param {Recognised | null} one */
function found(one) {
  return one ? [one] : [];
}

/** @param {string} text */
function isConnectionString(text) {
  return text.includes(';') && /(?:^|;) *(?:AccountName|AccountKey|BlobEndpoint|SharedAccessSignature)=/i.test(text);
}

/** @param {Record<string, any>} values */
function named(values) {
  return /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === 'string' && value !== '')));
}

/**
 * The moment that `text` says, RFC 3339.
 * @param {unknown} text
 */
function moment(text) {
  const time = new Date(typeof text === 'string' ? text : Number.NaN);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString().replace(/\.\d+Z$/, 'Z');
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
    const values = named({ access_key_id: aws.AccessKeyId, secret_access_key: aws.SecretAccessKey, session_token: aws.SessionToken ?? aws.Token });
    return { type: 's3', values, source: 'an AWS key', expiresAt: moment(aws.Expiration) };
  }
  const azure = translate(Object.entries(object), AZURE);
  return azure.client_id || azure.connection_string ? { type: 'azure_identity', values: azure, source: 'an Azure identity' } : null;
}

/**
 * The rows of a table that a provider's console lets one download: a line of headings, then a line for each key.
 * @param {string} text
 * @returns {Recognised[]}
 */
function ofTable(text) {
  const [head = [], ...rows] = text.split('\n').map((line) => line.split(',').map((cell) => unquoted(cell.trim())));
  const names = head.map((heading) => heading.toLowerCase().replaceAll(' ', '_'));
  if (!names.includes('access_key_id') || !names.includes('secret_access_key')) return [];
  return rows.flatMap((cells) => {
    const values = translate(names.map((name, index) => [name, cells[index]]), S3);
    const user = cells[names.indexOf('user_name')];
    return values.access_key_id ? [{ type: /** @type {const} */ ('s3'), values, source: user ? `the AWS key of ${user}` : `the AWS key ${masked(values.access_key_id)}` }] : [];
  });
}

/** @param {string} id */
function masked(id) {
  return `…${id.slice(-4)}`;
}

/** @param {string} text */
function unquoted(text) {
  const quote = text.charAt(0);
  return text.length > 1 && (quote === '"' || quote === "'") && text.endsWith(quote) ? text.slice(1, -1) : text;
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
 * A line that gives a name a value, in any of the shells: `NAME=value`, `export NAME=value`, `set NAME=value`,
 * `set "NAME=value"`, `$Env:NAME = "value"`, `NAME: value`.
 * @param {string} line
 * @returns {[string, string] | null}
 */
function assignment(line) {
  let rest = line.trim();
  if (/^[#;]/.test(rest)) return null;
  const command = /^(?:export|set|setx) +/i.exec(rest);
  if (command) rest = unquoted(rest.slice(command[0].length).trim());
  if (/^\$env:/i.test(rest)) rest = rest.slice(5);
  const name = /^[A-Za-z_][A-Za-z0-9_]*/.exec(rest)?.[0];
  if (!name) return null;
  const after = rest.slice(name.length).trimStart();
  if (after.startsWith('=') || after.startsWith(':')) {
    // A shell's semicolon ends the value; within quotes it is part of it.
    let value = after.slice(1).trim();
    if (/^["'].*["'];$/.test(value)) value = value.slice(0, -1);
    else if (!isConnectionString(value) && value.endsWith(';')) value = value.slice(0, -1).trimEnd();
    return [name, unquoted(value)];
  }
  // setx NAME value
  return command && after ? [name, unquoted(after)] : null;
}

/**
 * @param {string} text
 * @returns {Recognised[]}
 */
function ofLines(text) {
  /** @type {{name: string, entries: [string, string][]}[]} */
  const sections = [{ name: '', entries: [] }];
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    if (trimmed.startsWith('[') && trimmed.endsWith(']')) sections.push({ name: trimmed.slice(1, -1).trim(), entries: [] });
    else {
      const pair = assignment(trimmed);
      if (pair) sections.at(-1)?.entries.push(pair);
    }
  }
  return sections.flatMap(({ name, entries }) => found(ofSection(name, entries)));
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
    const expiresAt = moment(EXPIRY.map((key) => raw[key]).find(Boolean));
    return { type: 's3', values: s3, source: source + where, expiresAt };
  }
  return azure.client_id || azure.connection_string ? { type: 'azure_identity', values: azure, source: 'Azure variables' } : null;
}
