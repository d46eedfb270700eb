// Splits text into names and values: INI files, JSON, tables, variables of any shell, labels with values below them.

import formats from './formats.js';
import { interpret, isKnown, keyFile, normal } from './reading.js';

/**
 * @typedef {import('./reading.js').Pair} Pair
 * @typedef {import('./reading.js').Reading} Reading
 * @typedef {import('./reading.js').Refusal} Refusal
 * @typedef {import('./api.js').SecretType} CredentialType
 * @typedef {{name: string, source: string}} Origin its name in the text, and what it is in words
 * @typedef {Origin & Reading & {place?: boolean}} Recognized `place`: only a location, which completes the form
 * @typedef {Origin & {refused: Refusal}} Refused
 * @typedef {Recognized | Refused} Entry
 * @typedef {{name: string, lines: Pair[]}} Section
 */

/** The text has an error, so nothing in it is read. */
class Unreadable extends Error {}

/** @type {Record<string, CredentialType>} */
const RCLONE = /** @type {any} */ (formats.rclone.types);
/** @type {Record<string, CredentialType>} */
const AIRFLOW = /** @type {any} */ (formats.airflow.types);

/**
 * The credentials in `text`, each read or refused. Empty if the text has no known form.
 * @param {string} text
 * @returns {Entry[]}
 */
export function recognize(text) {
  const trimmed = text.replace(/^\ufeff/, '').replaceAll('\r', '').trim();
  try {
    return trimmed ? entries(trimmed) : [];
  } catch (error) {
    if (error instanceof Unreadable) return [];
    throw error;
  }
}

/** @param {string} text @returns {Entry[]} */
function entries(text) {
  if (/^[{[]/.test(text)) {
    const document = json(text);
    if (document) return ofJson(document);
    if (text.startsWith('{')) return [];
  }
  if (/^\[.*\]/.test(meaningful(text)[0] ?? '')) return ofSections(text);
  const place = /^(s3|gs):\/\/([^/\s]+)\/?(\S*)$/.exec(text);
  if (place) {
    /** @type {Record<string, string>} */
    const values = { bucket: place[2] ?? '', ...(place[3] ? { key_prefix: place[3] } : {}) };
    return [{ name: '', source: 'a bucket address', type: place[1] === 's3' ? 's3' : 'gcs', values, leftOut: [], place: true }];
  }
  if (/^https?:\/\/\S+$/.test(text)) return read('', 'a link', [['url', text]], 'direct-link');
  if (isConnectionString(text) && /^(?:DefaultEndpointsProtocol|Account(?:Name|Key)|EndpointSuffix|SharedAccessSignature|[A-Za-z]+Endpoint)=\S+$/i.test(text)) return read('', 'a connection string', [['connection_string', text]]);
  const rows = ofTable(text);
  return rows.length ? rows : ofLines(text);
}

/** @param {string} text */
const meaningful = (text) => text.split('\n').map((line) => line.trim()).filter((line) => line && !/^[#;]/.test(line));

/** @param {string} text @returns {any} */
function json(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** @param {string} text */
const isConnectionString = (text) => text.includes(';') && /(?:^|;) *(?:AccountName|AccountKey|BlobEndpoint|SharedAccessSignature)=/i.test(text);

/** @param {string} text */
function unquoted(text) {
  const quote = text.charAt(0);
  return text.length > 1 && ['"', "'", '`'].includes(quote) && text.endsWith(quote) ? text.slice(1, -1) : text;
}

/**
 * @param {string} name
 * @param {string} source
 * @param {Pair[]} pairs
 * @param {CredentialType} [type]
 * @returns {Entry[]}
 */
function read(name, source, pairs, type) {
  const reading = interpret(pairs, type);
  return reading ? [{ name, source, ...reading }] : [];
}

/** @param {string} name @param {string} source @param {string} field @param {Refusal['reason']} reason @returns {Entry[]} */
const refused = (name, source, field, reason) => [{ name, source, refused: { field, reason } }];

// INI files

/**
 * @param {string} text
 * @param {boolean} nests whether indented lines belong to the line above, as in files of the AWS tools
 * @returns {Section[]}
 */
function sections(text, nests) {
  /** @type {Section[]} */
  const found = [];
  /** @type {{name: string, level: number} | null} */
  let above = null;
  for (const line of text.split('\n')) {
    const bare = line.trim();
    if (!bare || /^[#;]/.test(bare)) continue;
    const level = line.length - line.trimStart().length;
    const section = found.at(-1);
    const at = bare.search(/[=:]/);
    if (nests && section && above && level > above.level) {
      if (at < 1) throw new Unreadable();
      section.lines.push([`${above.name}.${bare.slice(0, at).trim()}`, unquoted(bare.slice(at + 1).trim())]);
      continue;
    }
    const header = (nests ? /^\[(.+)\]/ : /^\[(.+)\]$/).exec(bare);
    if (header) {
      found.push({ name: (header[1] ?? '').trim(), lines: [] });
      above = null;
      continue;
    }
    if (!section || at < 1) throw new Unreadable();
    let value = bare.slice(at + 1).trim();
    if (nests) value = value.replace(/\s[#;].*$/, '').trim();
    above = { name: bare.slice(0, at).trim().toLowerCase(), level };
    section.lines.push([above.name, unquoted(value)]);
  }
  return found;
}

/** @param {Pair[]} lines of several sections: the last of a name counts */
const merged = (lines) => [...new Map(lines.map((line) => [line[0], line])).values()];

/** @param {Pair[]} lines @param {string} name */
const value = (lines, name) => String(lines.find(([other]) => other === name)?.[1] ?? '');

/** @param {string} text */
function ofSections(text) {
  if (/RCLONE_ENCRYPT_V0|Encrypted rclone/.test(text)) return [];
  return /^\s*type\s*[=:]/m.test(text) ? ofRclone(sections(text, false)) : ofProfiles(sections(text, true));
}

/** @param {Section[]} remotes */
function ofRclone(remotes) {
  const names = [...new Set(remotes.map(({ name }) => name))];
  return names.flatMap((name) => {
    const lines = merged(remotes.filter((remote) => remote.name === name).flatMap((remote) => remote.lines));
    return remote(name, `the rclone section [${name}]`, lines);
  });
}

/** @param {string} name @param {string} source @param {Pair[]} lines @returns {Entry[]} */
function remote(name, source, lines) {
  const [kind, provider, endpoint] = ['type', 'provider', 'endpoint'].map((field) => value(lines, field));
  const type = Object.hasOwn(RCLONE, kind ?? '') ? RCLONE[kind ?? ''] : undefined;
  if (!type) return refused(name, source, 'type', kind ? 'type' : 'no-type');
  const rest = lines.filter(([field]) => !['type', 'provider'].includes(field));
  if (type === 's3') {
    if (value(lines, 'env_auth') === 'true' && !value(lines, 'access_key_id')) return refused(name, source, 'env_auth', 'elsewhere');
    if (!endpoint && provider && provider !== 'AWS') return refused(name, source, 'provider', 'endpoint-needed');
    const virtual = formats.rclone.virtual_hosted.includes(provider ?? '');
    if (virtual) rest.splice(0, rest.length, ...rest.filter(([field]) => field !== 'force_path_style'));
    if (endpoint && (virtual || !value(lines, 'force_path_style'))) rest.push(['provider', String(!virtual), 'force_path_style']);
  } else if (type === 'azure_identity') {
    const elsewhere = ['env_auth', 'use_msi', 'use_az', 'use_emulator'].find((field) => value(lines, field) === 'true')
      ?? ['client_certificate_path', 'service_principal_file', 'username'].find((field) => value(lines, field));
    if (elsewhere && !value(lines, 'key') && !value(lines, 'sas_url')) return refused(name, source, elsewhere, 'elsewhere');
  } else {
    if (!value(lines, 'service_account_credentials')) {
      const file = value(lines, 'service_account_file');
      return refused(name, source, file ? 'service_account_file' : 'service_account_credentials', file ? 'key-file' : 'no-key');
    }
    rest.splice(0, rest.length, ...rest.filter(([field]) => !['service_account_file', 'client_id', 'client_secret', 'token'].includes(field)));
  }
  return read(name, source, rest, type);
}

/** @param {Section[]} all */
function ofProfiles(all) {
  /** @type {Map<string, Pair[]>} */
  const profiles = new Map();
  /** @type {Map<string, Pair[]>} */
  const services = new Map();
  for (const { name, lines } of all) {
    const [, kind = '', rest = ''] = /^(profile|services|sso-session)\s+(.*)$/.exec(name) ?? [];
    if (kind === 'sso-session' || ['plugins', 'preview', 'toplevel'].includes(name)) continue;
    const map = kind === 'services' ? services : profiles;
    const own = kind ? unquoted(rest.trim()) : name;
    const before = map.get(own) ?? [];
    // The credentials file, in which a header is only the name, takes precedence over the config file.
    map.set(own, merged(kind === 'profile' ? [...lines, ...before] : [...before, ...lines]));
  }
  return [...profiles].flatMap(([name, lines]) => profile(name, lines, profiles, services));
}

/**
 * @param {string} name
 * @param {Pair[]} lines
 * @param {Map<string, Pair[]>} profiles
 * @param {Map<string, Pair[]>} services
 * @returns {Entry[]}
 */
function profile(name, lines, profiles, services) {
  const origin = `the AWS profile [${name}]`;
  const pairs = [...lines];
  const source = value(lines, 'source_profile');
  if (source && source !== name) {
    const from = profiles.get(source);
    if (!from) return refused(name, origin, 'source_profile', 'no-source');
    if (value(from, 'role_arn')) return refused(name, origin, 'source_profile', 'chain');
    const keys = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'];
    for (const [field, reason] of Object.entries(formats.refused).flatMap(([reason, fields]) => fields.map((field) => [field, reason]))) {
      const other = from.find(([name]) => normal(name) === field);
      if (other && reason !== 'not-supported') return refused(name, origin, 'source_profile', /** @type {Refusal['reason']} */ (reason));
    }
    pairs.splice(0, pairs.length, ...from.filter(([field]) => keys.includes(field)), ...lines.filter(([field]) => !keys.includes(field)));
  }
  const service = value(lines, 'services');
  if (service) {
    const settings = services.get(service);
    if (!settings) return refused(name, origin, 'services', 'no-services');
    const own = settings.filter(([field]) => /^(s3|sts)\./.test(field));
    pairs.splice(0, pairs.length, ...pairs.filter(([field]) => !own.some(([other]) => other === field)), ...own);
  }
  const used = pairs.filter(([field, value]) => field !== 'source_profile' && field !== 'services' && (value !== '' || !pairs.some(([other]) => other.startsWith(`${field}.`)))
    && (!/^[a-z0-9-]+\./.test(field) || /^(s3|sts)\./.test(field)));
  return read(name, origin, used, 's3');
}

// JSON

/** @param {any} document @returns {Entry[]} */
function ofJson(document) {
  if (Array.isArray(document)) {
    return document.flatMap((item, index) => secret(String(item?.conn_id ?? item?.name ?? item?.alias ?? index + 1), item));
  }
  // sops adds its own member to the file that it encrypts.
  if (document.sops?.mac) return refused('', 'a file of sops', 'sops', 'encrypted');
  if (document.request_id && document.data && typeof document.data === 'object') {
    const { data } = document;
    return secret('', data.data && data.metadata ? data.data : data);
  }
  const wrapped = document.Credentials ?? document.AccessKey ?? document.accessKey;
  if (wrapped && typeof wrapped === 'object') return secret('', wrapped);
  const aliases = document.aliases ?? document.hosts;
  if (document.version && aliases && typeof aliases === 'object') return Object.entries(aliases).flatMap(([name, alias]) => secret(name, alias));
  const values = Object.values(document);
  const isConnection = values.some((value) => typeof value === 'string' ? connectionKind(value) !== '' : typeof value?.conn_type === 'string');
  const isByPath = values.length > 0 && values.every((value) => isObject(value) && !isPrinted(value));
  const single = isConnection || isByPath ? [] : secret('', document);
  return single.length || !values.some((value) => isConnection || isObject(value)) ? single : Object.entries(document).flatMap(([name, value]) => secret(name, value));
}

/** @param {any} value */
const isObject = (value) => Boolean(value && typeof value === 'object' && !Array.isArray(value));

/** @param {any} value an output of Terraform */
const isPrinted = (value) => isObject(value) && 'value' in value && ('type' in value || 'sensitive' in value);

/** @param {any} object @param {string} [prefix] @returns {Pair[]} */
function flattened(object, prefix = '') {
  return Object.entries(object).flatMap(([name, value]) => {
    if (isPrinted(value)) return flattened({ [name]: value.value }, prefix);
    return isObject(value) && !keyFile(value) && name !== 'headers' ? flattened(value, `${prefix}${name}.`) : [/** @type {Pair} */ ([prefix + name, value])];
  });
}

/** @param {string} name @param {any} value @returns {Entry[]} */
function secret(name, value) {
  if (typeof value === 'string') {
    const found = connectionKind(value) ? connection(name, ofAddress(value)) : [];
    return found.length ? found : refused(name, `the entry ${name}`, name, 'object');
  }
  if (!isObject(value)) return refused(name, `the entry ${name}`, name, 'object');
  if (typeof value.conn_type === 'string') return connection(name, ofConnection(value));
  if (value.type === 'service_account') return read(name, 'a Google Cloud key file', [['service_account_key', JSON.stringify(value)]], 'gcs');
  if (value.kind === 'Secret' && value.data) return refused(name, 'a Kubernetes Secret', 'data', 'encoded');
  // In aliases of MinIO's client, `path` is the style of addresses.
  const pairs = flattened(value).map(([field, value]) => /** @type {Pair} */ ([field, value, field === 'path' && Object.hasOwn(formats.flags, String(value).toLowerCase()) ? 'path_style' : field]));
  const found = read(name, name ? `the secret ${name}` : value.AccessKeyId ? 'an AWS key' : 'a JSON object', pairs);
  return found.length || !name ? found : refused(name, `the secret ${name}`, '', 'unknown');
}

// Connections of Airflow

/** @param {string} text the type in a connection's URI; empty if it is none */
function connectionKind(text) {
  const kind = (/^([a-z][a-z0-9_-]*):\/\//i.exec(text)?.[1] ?? '').replaceAll('-', '_');
  return Object.hasOwn(AIRFLOW, kind) && kind !== 's3' ? kind : '';
}

/** @param {any} value @returns {Record<string, any>} */
function ofConnection(value) {
  const extra = value.extra_dejson ?? value.extra;
  return { ...value, extra: typeof extra === 'string' && extra ? json(extra) ?? 'invalid' : extra ?? {} };
}

/** @param {string} address @returns {Record<string, any>} */
function ofAddress(address) {
  const [, kind = '', rest = '', query = ''] = /^([^:]+):\/\/([^?]*)\??(.*)$/s.exec(address) ?? [];
  const [authority = '', schema = ''] = rest.split('/');
  const at = authority.lastIndexOf('@');
  const [login = '', password = ''] = (at < 0 ? '' : authority.slice(0, at)).split(/:(.*)/s);
  const [, host = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(authority.slice(at + 1)) ?? [];
  const decoded = (/** @type {string} */ text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const extra = parameters.__extra__ === undefined ? parameters : json(parameters.__extra__) ?? 'invalid';
  return { conn_type: kind.replaceAll('-', '_'), host: decoded(host), port, schema: decoded(schema), login: decoded(login), password: decoded(password), extra };
}

/** @param {string} name @param {Record<string, any>} connection @returns {Entry[]} */
function connection(name, { conn_type: kind, host, port, schema, login, password, extra }) {
  const origin = `the Airflow connection ${name}`;
  const type = Object.hasOwn(AIRFLOW, kind) ? AIRFLOW[kind] : undefined;
  if (!type) return refused(name, origin, 'conn_type', kind ? 'type' : 'no-type');
  if (extra === 'invalid') return refused(name, origin, 'extra', 'json');
  // Older releases put the provider into the name. Settings of other services do not concern a bucket.
  const pairs = flattened(extra).map(([field, value]) => /** @type {Pair} */ ([field, value, field.replace(/^.*__/, '').replace(/^service_config\./, '')]))
    .filter(([field]) => !/^service_config\./.test(field) || /^service_config\.(s3|sts)\./.test(field));
  const has = (/** @type {string} */ wanted) => pairs.some(([, value, as = '']) => normal(as) === wanted && value);
  if (type === 's3') {
    const addressed = host ? [['host', host], ['port', port], ['schema', /^https?$/.test(schema ?? '') ? schema : '', 'scheme']] : [];
    pairs.push(['login', login, 'access_key_id'], ['password', password, 'secret_access_key'], .../** @type {Pair[]} */ (addressed));
  } else if (type === 'azure_identity') {
    const isApplication = has('tenantid') || has('tenant');
    // Without a directory, the login is the account, and the password its key.
    pairs.push(['login', login, isApplication ? 'client_id' : host ? 'ignored' : 'account'], ['password', password, isApplication ? 'client_secret' : 'account_key']);
    if (!has('connectionstring')) pairs.push(['host', host, 'address']);
  } else if (!pairs.some(([, value, as = '']) => /keyfiledict/.test(normal(as)) && keyFile(value))) {
    return has('keypath') ? refused(name, origin, 'key_path', 'key-of-host') : refused(name, origin, 'keyfile_dict', 'no-key');
  }
  return read(name, origin, pairs, type);
}

// Tables

/** @param {string} text @returns {Entry[]} */
function ofTable(text) {
  const [head = '', ...rows] = text.split('\n').filter((line) => line.trim());
  for (const separator of [',', ';', '\t']) {
    const names = cells(head, separator);
    const has = (/** @type {string} */ field) => names.some((name) => normal(name).endsWith(field));
    if (names.length < 2 || !(has('accesskeyid') || has('accesskey')) || !(has('secretaccesskey') || has('secretkey'))) continue;
    return rows.flatMap((row, index) => {
      const values = cells(row, separator);
      const pairs = names.map((name, at) => /** @type {Pair} */ ([name, values[at] ?? '']));
      const user = String(pairs.find(([name]) => ['username', 'user'].includes(normal(name)))?.[1] ?? '');
      const id = String(pairs.find(([name]) => /accesskey(id)?$/.test(normal(name)))?.[1] ?? '');
      return id ? read(user || (rows.length > 1 ? String(index + 1) : ''), user ? `the AWS key of ${user}` : `the AWS key …${id.slice(-4)}`, pairs, 's3') : [];
    });
  }
  return [];
}

/** @param {string} line @param {string} separator */
function cells(line, separator) {
  const found = [];
  let [cell, isQuoted] = ['', false];
  for (let at = 0; at < line.length; at += 1) {
    const c = line.charAt(at);
    if (c === '"' && isQuoted && line.charAt(at + 1) === '"') {
      cell += '"';
      at += 1;
    } else if (c === '"') isQuoted = !isQuoted;
    else if (c === separator && !isQuoted) {
      found.push(cell.trim());
      cell = '';
    } else cell += c;
  }
  return [...found, cell.trim()];
}

// Variables and labels

const COMMAND = /^(?:(?:export|setx|setenv|set|env|declare|typeset|docker|podman|run|sudo|aws)\s+|-{1,2}(?:e|env|x|gx|Ux|xg|from-literal)(?:\s+|=))/;
const ASSIGNMENT = /^(?:\$env:|\$)?(["']?)([A-Za-z_][A-Za-z0-9_.-]*)\1(\s*)(?:=|:(?!\/\/))(\s*)/i;

/**
 * The names and values in a line: `NAME=value`, `export A=b C=d`, `$Env:NAME = "value"`, `NAME: value`, `setx NAME value`,
 * `docker run -e NAME=value`. Returns `null` if it is no assignment.
 * @param {string} line
 * @returns {Pair[] | null}
 */
function assignments(line) {
  const spaced = /^(?:setx|setenv|set(?:\s+-[A-Za-z]+)+)\s+([A-Za-z_][A-Za-z0-9_]*)\s+([^=\s].*)$/i.exec(line);
  if (spaced) return [[spaced[1] ?? '', unquoted((spaced[2] ?? '').trim())]];
  // A label, whose name has spaces.
  const label = /^([A-Za-z][A-Za-z0-9 _.()-]*?)\s*(?::(?!\/\/)|=|\t)\s*(.+)$/.exec(line);
  if (label && /\s/.test(label[1] ?? '') && isKnown(label[1] ?? '')) return [[label[1] ?? '', unquoted((label[2] ?? '').trim())]];
  /** @type {Pair[]} */
  const found = [];
  let rest = line;
  let isCommand = false;
  while (rest) {
    rest = rest.replace(/^[\s;&,{}]+/, '');
    const command = COMMAND.exec(rest);
    if (command) {
      isCommand = true;
      rest = rest.slice(command[0].length);
      if (/^"[^"]*=[^"]*"$/.test(rest)) rest = unquoted(rest);
      continue;
    }
    const option = /^--?([a-z][a-z-]*)(?:=|\s+)(\S+)/.exec(rest);
    if (option && isKnown(option[1] ?? '')) {
      found.push([option[1] ?? '', unquoted(option[2] ?? '')]);
      rest = rest.slice(option[0].length);
      continue;
    }
    const assignment = ASSIGNMENT.exec(rest);
    if (!assignment) {
      if (!rest || rest.startsWith('#')) break;
      if (!isCommand && found.length < 2) {
        const last = found.at(-1);
        if (!last) return null;
        last[1] = `${last[1]} ${rest}`; // its spaces are refused
        break;
      }
      rest = rest.replace(/^\S+/, '');
      continue;
    }
    rest = rest.slice(assignment[0].length);
    const [name, isTight] = [assignment[2] ?? '', assignment[3] === '' && assignment[4] === ''];
    const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)')(?=[\s;,&)}]|$)/.exec(rest);
    let length;
    let value;
    if (quoted) {
      value = quoted[2] ?? (quoted[1] ?? '').replace(/\\(["\\$`])/g, '$1');
      length = quoted[0].length;
    } else if (isTight && assignment[0].endsWith('=') && !rest.startsWith('{')) {
      value = /^\S*/.exec(rest)?.[0] ?? '';
      if (!isConnectionString(value)) value = value.split(';')[0] ?? '';
      length = value.length;
      value = value.replace(/[,;&]$/, '');
    } else {
      value = rest.replace(/\s+#.*$/, '').replace(/[\s,;]+$/, '');
      length = rest.length;
    }
    found.push([name, value]);
    rest = rest.slice(length);
  }
  return found;
}

/** @param {string} text @returns {Entry[]} */
function ofLines(text) {
  const alias = /^mc(?:\.exe)? (?:alias set|config host add) (\S+) (\S+) (\S+) (\S+)/.exec(text);
  if (alias) return read(alias[1] ?? '', `the alias ${alias[1]}`, [['url', alias[2]], ['access_key', unquoted(alias[3] ?? '')], ['secret_key', unquoted(alias[4] ?? '')]], 's3');
  const lines = text.replace(/[ \t][\\`^][ \t]*\n/g, ' ').split('\n').map((line) => line.trim().replace(/^- /, '')).filter((line) => line && !/^(?:[#;]|\/\/|rem )/i.test(line));
  /** @type {Pair[]} */
  const pairs = [];
  for (let at = 0; at < lines.length; at += 1) {
    const [line = '', next = ''] = [lines[at], lines[at + 1]];
    const label = line.replace(/\s*[:=]$/, '');
    if (isKnown(label) && next && !isKnown(next.replace(/\s*[:=]$/, '')) && !(assignments(next) && !/^https?:\/\//.test(next))) {
      pairs.push([label, unquoted(next)]);
      at += 1;
    } else if (/^https?:\/\/\S+$/.test(line)) pairs.push(['address', line]);
    else pairs.push(...assignments(line) ?? []);
  }
  // Kubernetes lists variables as pairs of their own.
  const variables = pairs.flatMap(([name, value], at) => name === 'name' && pairs[at + 1]?.[0] === 'value' ? [/** @type {Pair} */ ([String(value), pairs[at + 1]?.[1]])] : name === 'value' ? [] : [/** @type {Pair} */ ([name, value])]);
  if (value(variables, 'kind') === 'Secret' && /^data:/m.test(text)) return refused('', 'a Kubernetes Secret', 'data', 'encoded');
  const isConnection = (/** @type {Pair} */ [name, value]) => connectionKind(String(value)) !== '' || /^AIRFLOW_CONN_/.test(name);
  const connections = variables.filter(isConnection).flatMap(([name, text]) => {
    const own = name.replace(/^AIRFLOW_CONN_/, '').toLowerCase();
    return secret(own, json(String(text)) ?? text);
  });
  if (connectionKind(text)) return secret('', text);
  const others = variables.filter((pair) => !isConnection(pair));
  const found = read('', '', others);
  const words = { s3: 'S3 variables', azure_identity: 'Azure variables', gcs: 'Google Cloud variables', 'direct-link': 'variables' };
  return [...connections, ...found.map((one) => ({ ...one, source: 'type' in one ? words[one.type] : 'the text' }))];
}
