// Reads names and values as a credential: which type they are, and which field each fills. `crates/vault-cli/src/import`
// does the same for `orgvault import`, and one list of examples tests both.

import formats from './formats.js';

/**
 * @typedef {import('./api.js').SecretType} CredentialType
 * @typedef {keyof typeof formats.reasons} Reason
 * @typedef {{field: string, reason: Reason}} Refusal
 * @typedef {[string, unknown] | [string, unknown, string]} Pair a name, its value, and the name that it counts as, if that is another
 * @typedef {object} Reading
 * @property {CredentialType} type
 * @property {Record<string, string>} values
 * @property {string[]} leftOut names that fill no field
 * @property {Refusal} [needs] the missing value, and the name to show for it
 * @property {string} [expiresAt] RFC 3339
 */

/** @type {Record<string, Record<string, string>>} Names of fields by alias, for each type. */
const NAMES = Object.fromEntries(Object.entries(formats.fields).map(([type, fields]) => [type, inverted(fields)]));
const REFUSED = inverted(formats.refused);
/** @type {Record<string, boolean | null>} */
const FLAGS = formats.flags;
/** @type {Record<string, string[]>} */
const CLOUDS = formats.azure_clouds;
/** Fields of which the best alias counts, if several are set. */
const RANKED = ['region', 'expires_at'];
const NO_SPACES = ['access_key_id', 'secret_access_key', 'session_token', 'bucket', 'region', 'role_arn', 'tenant_id', 'client_id', 'client_secret', 'connection_string'];

/** @param {Record<string, string[]>} lists @returns {Record<string, string>} */
function inverted(lists) {
  return Object.fromEntries(Object.entries(lists).flatMap(([name, aliases]) => aliases.map((alias) => [alias, name])));
}

/** @param {string} name */
export const normal = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/**
 * What `name`, a normal form, stands for, without prefixes and names of stores around it.
 * @param {Record<string, string>} names
 * @param {string} name
 * @param {number} [depth] how many words may be around it
 * @returns {{name: string, foreign: boolean} | undefined} `foreign`: a store's name was around it
 */
function resolve(names, name, depth = 4) {
  const direct = Object.hasOwn(names, name) ? names[name] : undefined;
  if (direct) return { name: direct, foreign: false };
  for (const [words, foreign] of /** @type {[string[], boolean][]} */ ([[formats.prefixes, false], [formats.stores, true]])) {
    for (const word of words) {
      const rests = [name.startsWith(word) && name.slice(word.length), name.endsWith(word) && name.slice(0, -word.length)];
      for (const rest of rests) {
        const found = rest && depth > 0 ? resolve(names, rest, depth - 1) : undefined;
        if (found) return { ...found, foreign: found.foreign || foreign };
      }
    }
  }
  return undefined;
}

/** @param {string[]} list @param {string} name */
const among = (list, name) => resolve(Object.fromEntries(list.map((alias) => [alias, alias])), name) !== undefined;

/**
 * Whether `name` is one of the names of a key or an identity.
 * @param {string} name
 */
export const isKnown = (name) => ['s3', 'azure_identity'].some((type) => resolve(NAMES[type] ?? {}, normal(name)));

/** @param {unknown} value @returns {string} */
const text = (value) => typeof value === 'string' ? value.trim() : typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

/** @param {unknown} value an address is reduced to its distinguishing part; other values are unchanged */
const bare = (value) => text(value).replace(/^https?:\/\//i, '').replace(/\/$/, '');

/** @param {unknown} value */
const isEmpty = (value) => value === null || value === undefined || (typeof value === 'string' && value.trim() === '');

/** @param {unknown} value @returns {boolean | null | undefined} `undefined`: it is no flag */
const flag = (value) => FLAGS[normal(text(value))];

/** @param {string} name @param {string} value @param {CredentialType} type */
function looksLikeAddress(name, value, type) {
  if (/^https?:\/\//i.test(value) || /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]+:\d+$/i.test(value)) return true;
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase().split(/[^a-z0-9]+/);
  const marks = type === 's3' ? formats.address_words : [...formats.address_words, ...formats.azure_words];
  return words.some((word) => marks.some((mark) => word.startsWith(mark) || word.endsWith(mark)));
}

/** @param {unknown} value @returns {any} the key file, if it is one */
export function keyFile(value) {
  let file = value;
  if (typeof file === 'string' && file.trim().startsWith('{')) {
    try {
      file = JSON.parse(file);
    } catch {
      return null;
    }
  }
  return file && typeof file === 'object' && ('private_key' in file || /** @type {any} */ (file).type === 'service_account') ? file : null;
}

/** @param {Pair[]} pairs @returns {CredentialType | undefined} */
function typeOf(pairs) {
  const set = pairs.filter(([, value]) => !isEmpty(value));
  const names = (/** @type {CredentialType} */ type) => new Map(set.map(([name, value, as = name]) => [resolve(NAMES[type] ?? {}, normal(as))?.name, value]));
  if (keyFile(names('gcs').get('service_account_key'))) return 'gcs';
  const [s3, azure] = [names('s3'), names('azure_identity')];
  if (s3.has('access_key_id') && s3.has('secret_access_key')) return 's3';
  const identity = azure.has('client_id') && (azure.has('client_secret') || azure.has('tenant_id'));
  if (identity || azure.has('connection_string') || azure.has('sas_url') || (azure.has('account') && (azure.has('account_key') || azure.has('sas')))) return 'azure_identity';
  const generic = ['key', 'secret', 'access'];
  const strong = set.map(([name]) => normal(name)).filter((name) => !generic.includes(name)).map((name) => resolve(NAMES['s3'] ?? {}, name)?.name);
  if (strong.includes('access_key_id') || strong.includes('secret_access_key')) return 's3';
  const link = set.every(([name]) => resolve(NAMES['direct-link'] ?? {}, normal(name)) || among(formats.harmless, normal(name)));
  return link && /^https?:\/\//.test(text(names('direct-link').get('url'))) ? 'direct-link' : undefined;
}

class Fields {
  /** @type {Map<string, {value: any, name: string, rank: number}>} */
  found = new Map();
  /** @type {string[]} */
  leftOut = [];
  foreign = '';

  /** @param {string} field */
  get(field) {
    return this.found.get(field)?.value;
  }

  /** @param {string} field */
  text(field) {
    return text(this.get(field));
  }

  /** @param {string} field @param {Reason} reason @returns {never} */
  refuse(field, reason) {
    throw { field: this.found.get(field)?.name ?? field, reason };
  }
}

/**
 * Sorts `pairs` into the fields of `type`.
 * @param {Pair[]} pairs
 * @param {CredentialType} type
 */
function sorted(pairs, type) {
  const fields = new Fields();
  const names = NAMES[type] ?? {};
  for (const [name, value, as = name] of pairs) {
    if (isEmpty(value)) continue;
    const key = normal(as);
    const refused = resolve(REFUSED, key);
    const found = resolve(names, key);
    // Labels such as `environment: production` lead nowhere.
    const isHarmless = formats.harmless_values.includes(normal(text(value))) && /cloud|environment|partition/.test(key);
    const isDefault = /** @type {Record<string, string>} */ (formats.defaults)[key] === normal(text(value));
    if (isHarmless || isDefault || among(formats.harmless, key)) fields.leftOut.push(name);
    else if (refused && flag(value) !== false) throw { field: name, reason: refused.name };
    else if (among(formats.refused_if_true, key)) {
      if (flag(value) !== false) throw { field: name, reason: 'not-supported' };
    } else if (among(formats.refused_unless_true, key)) {
      if (flag(value) !== true) throw { field: name, reason: 'not-supported' };
    } else if (found) {
      if (Array.isArray(value) && found.name !== 'endpoint_list') throw { field: name, reason: 'text' };
      if (found.foreign || among(formats.names_of_stores, key)) fields.foreign ||= name;
      const before = fields.found.get(found.name);
      const rank = Object.keys(names).indexOf(key);
      if (before && bare(before.value) !== bare(value)) {
        if (!RANKED.includes(found.name)) throw { field: name, reason: 'conflict' };
        if (rank < 0 || (before.rank >= 0 && before.rank <= rank)) continue;
      }
      fields.found.set(found.name, { value, name, rank });
    } else if (key === 'token' && type === 's3') {
      fields.found.set('token', { value, name, rank: 0 });
    } else if (!formats.harmless_prefixes.some((prefix) => key.startsWith(prefix)) && looksLikeAddress(as, text(value), type)) {
      throw { field: name, reason: 'not-understood' };
    } else fields.leftOut.push(name);
  }
  for (const field of NO_SPACES) if (/\s/.test(fields.text(field))) fields.refuse(field, 'spaces');
  return fields;
}

/** @param {Fields} fields @param {string} field */
function address(fields, field) {
  const given = fields.text(field);
  const scheme = fields.text('scheme').toLowerCase().replace('://', '') || (flag(fields.get('secure')) === false ? 'http' : 'https');
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `${scheme}://${given}`;
  const parts = /^(https?):\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d+)?\/?$/i.exec(whole);
  if (!parts || (!given.includes('://') && !/[.:]|^localhost$/.test(given))) return fields.refuse(field, 'address');
  const port = fields.text('port');
  const used = (parts[1] ?? '').toLowerCase();
  return `${used}://${parts[2]}${parts[3] ?? (port && port !== (used === 'http' ? '80' : '443') ? `:${port}` : '')}`;
}

/** @param {Fields} fields @returns {boolean | undefined} */
function pathStyle(fields) {
  for (const [field, inverse] of /** @type {[string, boolean][]} */ ([['path_style_access', false], ['virtual_hosted', true]])) {
    if (!fields.found.has(field)) continue;
    const value = flag(fields.get(field));
    if (value === undefined) fields.refuse(field, 'style');
    if (typeof value === 'boolean') return value !== inverse;
  }
  const host = fields.text('host_bucket');
  return host ? !/%\(bucket\)|[{$]bucket/i.test(host) : undefined;
}

/** @param {Fields} fields @returns {Reading} */
function s3(fields) {
  /** @type {Record<string, string>} */
  const values = {};
  for (const field of ['access_key_id', 'secret_access_key', 'session_token', 'bucket', 'region', 'role_arn', 'external_id', 'sse_kms_key_id', 'key_prefix']) {
    if (fields.found.has(field)) values[field] = fields.text(field);
  }
  const token = fields.found.get('token');
  if (token && !values.session_token) {
    if (values.access_key_id?.startsWith('ASIA')) values.session_token = text(token.value);
    else fields.leftOut.push(token.name);
  }
  const endpoint = ['endpoint_s3', 'endpoint'].find((field) => fields.found.has(field));
  if (endpoint) values.endpoint = address(fields, endpoint);
  else if (fields.found.has('port')) fields.refuse('port', 'not-understood');
  if (fields.found.has('sts_endpoint')) values.sts_endpoint = address(fields, 'sts_endpoint');
  const style = pathStyle(fields);
  if (style !== undefined) values.path_style_access = String(style);
  const list = fields.found.get('endpoint_list')?.name;
  if (list) fields.leftOut.push(list);
  /** @type {Refusal | undefined} */
  let needs;
  if (!endpoint && list) needs = { field: list, reason: 'endpoint-list' };
  else if (!endpoint && fields.foreign) needs = { field: fields.foreign, reason: 'endpoint-needed' };
  return { type: 's3', values, leftOut: fields.leftOut, needs };
}

/**
 * The account and the cloud in an address, a host or the suffix of a cloud.
 * @param {string} given
 * @returns {{account?: string, suffix?: string, url?: string} | null}
 */
function azureAddress(given) {
  const parts = /^(?:(https?):\/\/)?([a-z0-9.-]+)(:\d+)?(\/[a-z0-9-]+)?\/?$/i.exec(given);
  if (!parts) return null;
  const host = (parts[2] ?? '').toLowerCase();
  const labels = host.split('.');
  const service = labels.findIndex((label) => formats.azure_services.includes(label));
  const url = `${(parts[1] ?? 'https').toLowerCase()}://${host}${parts[3] ?? ''}${parts[4] ?? ''}`;
  if (Object.hasOwn(CLOUDS, host)) return { suffix: host };
  if (service === 0) return { suffix: labels.slice(1).join('.') };
  if (service === 1) return { account: labels[0], suffix: labels.slice(2).join('.'), url };
  if (service > 1) return { account: labels[0], url };
  if (!parts[1] && labels.length === 1 && !parts[3]) return { account: host };
  return parts[1] ? { url } : { suffix: host };
}

/** @param {string} connection */
function segments(connection) {
  return Object.fromEntries(connection.split(';').map((segment) => {
    const at = segment.indexOf('=');
    return [segment.slice(0, at).trim().toLowerCase(), segment.slice(at + 1).trim()];
  }));
}

/** @param {string} connection the suffix of the cloud of a connection string; empty if it is not known */
function suffixOf(connection) {
  const parts = segments(connection);
  const endpoint = Object.entries(parts).find(([name]) => name.endsWith('endpoint'))?.[1];
  return parts['endpointsuffix']?.toLowerCase() ?? (endpoint ? azureAddress(endpoint)?.suffix ?? '' : 'core.windows.net');
}

/** @param {Fields} fields @returns {Reading} */
function azure(fields) {
  /** @type {Record<string, string>} */
  const values = {};
  const named = fields.text('cloud');
  const cloud = named && Object.entries(CLOUDS).find(([suffix, names]) => suffix === named.toLowerCase() || names.includes(normal(named.replace(/^https?:\/\//i, ''))))?.[0];
  if (named && !cloud) fields.refuse('cloud', 'cloud');
  const given = fields.text('address');
  const where = given ? azureAddress(given) : {};
  if (!where) return fields.refuse('address', 'address');
  const [key, givenSas] = [fields.text('account_key'), fields.text('sas')];
  // Airflow accepts a whole URL as `sas_token`.
  const urlField = /^https?:\/\//i.test(givenSas) ? 'sas' : 'sas_url';
  const [sas, url] = urlField === 'sas' ? ['', givenSas] : [givenSas.replace(/^\?/, ''), fields.text('sas_url')];
  let account = fields.text('account').toLowerCase();
  if (account.includes('.')) {
    const whole = azureAddress(account);
    account = whole?.account ?? fields.refuse('account', 'address');
    where.suffix ??= whole?.suffix;
  }
  if (where.account && account && where.account !== account) fields.refuse('address', 'other-account');
  account ||= where.account ?? '';
  const suffix = where.suffix || cloud || 'core.windows.net';
  if (cloud && where.suffix && where.suffix !== cloud) fields.refuse('cloud', 'other-cloud');
  const container = fields.text('container');
  if (container) values.container = container;
  if (fields.found.has('key_prefix')) values.key_prefix = fields.text('key_prefix');
  if (url && !(account && key)) {
    const [address = '', signature = ''] = url.split(/\?(.*)/s);
    const parts = /^(https?:\/\/[^/]+)(?:\/([^/]+))?/i.exec(address);
    if (!parts || !signature) return fields.refuse(urlField, 'sas');
    if (parts[2] && !container) values.container = parts[2];
    values.connection_string = `BlobEndpoint=${parts[1]};SharedAccessSignature=${signature}`;
  } else if (fields.found.has('connection_string') && !(account && key)) {
    values.connection_string = fields.text('connection_string');
    const own = suffixOf(values.connection_string);
    if (cloud && own !== cloud) fields.refuse('cloud', 'other-cloud');
    if (where.suffix && own !== where.suffix) fields.refuse('address', 'other-cloud');
  } else if (account) {
    const isKnown = Object.hasOwn(CLOUDS, suffix) && !(where.url && !where.suffix);
    const blob = where.url && !isKnown ? where.url : `https://${account}.blob.${suffix}`;
    const end = isKnown ? `EndpointSuffix=${suffix}` : `BlobEndpoint=${blob}`;
    values.connection_string = sas && !key ? `BlobEndpoint=${blob};SharedAccessSignature=${sas}`
      : ['DefaultEndpointsProtocol=https', `AccountName=${account}`, ...(key ? [`AccountKey=${key}`] : []), end].join(';');
  } else if (given) fields.refuse('address', 'account-needed');
  const identity = ['tenant_id', 'client_id', 'client_secret'].filter((field) => fields.found.has(field));
  const opens = /(?:^|;)\s*(?:AccountKey|SharedAccessSignature)=/i.test(values.connection_string ?? '');
  for (const field of identity) {
    if (!opens || identity.length === 3) values[field] = fields.text(field);
    else fields.leftOut.push(fields.found.get(field)?.name ?? field);
  }
  const needs = values.connection_string ? undefined : { field: fields.found.get('cloud')?.name ?? 'account_name', reason: /** @type {const} */ ('account-needed') };
  return { type: 'azure_identity', values, leftOut: fields.leftOut, needs };
}

/** @param {Fields} fields @returns {Reading} */
function gcs(fields) {
  const key = keyFile(fields.get('service_account_key'));
  if (!key) fields.refuse('service_account_key', 'no-key');
  const universe = key.universe_domain ?? 'googleapis.com';
  if (fields.found.has('universe') && fields.text('universe') !== universe) fields.refuse('universe', 'universe');
  const host = fields.text('address').replace(/^https:\/\//i, '').split('/')[0] ?? '';
  if (host && host !== `storage.${universe}`) fields.refuse('address', 'google-address');
  const given = fields.get('service_account_key');
  /** @type {Record<string, string>} */
  const values = { service_account_key: typeof given === 'string' ? given : JSON.stringify(given) };
  for (const field of ['bucket', 'key_prefix']) if (fields.found.has(field)) values[field] = fields.text(field);
  return { type: 'gcs', values, leftOut: fields.leftOut };
}

/** @param {unknown} time RFC 3339, or seconds or milliseconds since 1970 @returns {string | undefined} RFC 3339 */
function moment(time) {
  const number = /^\d+$/.test(text(time)) ? Number(text(time)) : Number.NaN;
  const date = new Date(Number.isNaN(number) ? text(time) || Number.NaN : number < 1e11 ? number * 1000 : number);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString().replace(/\.\d+Z$/, 'Z');
}

/**
 * The credential that `pairs` describe. Returns `null` if their type is unknown.
 * @param {Pair[]} pairs
 * @param {CredentialType} [given] its type, if it is known
 * @returns {Reading | {refused: Refusal} | null}
 */
export function interpret(pairs, given) {
  const type = given ?? typeOf(pairs);
  if (!type) return null;
  try {
    const fields = sorted(pairs, type);
    const reading = { s3, azure_identity: azure, gcs, 'direct-link': link }[type](fields);
    return { ...reading, expiresAt: moment(fields.get('expires_at')) };
  } catch (refused) {
    if (!refused || typeof refused !== 'object' || !('reason' in refused)) throw refused;
    return { refused: /** @type {Refusal} */ (refused) };
  }
}

/** @param {Fields} fields @returns {Reading} */
function link(fields) {
  const headers = fields.get('headers');
  /** @type {Record<string, string>} */
  const values = { url: fields.text('url') };
  if (headers && typeof headers === 'object') values.headers = Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join('\n');
  return { type: 'direct-link', values, leftOut: fields.leftOut };
}
