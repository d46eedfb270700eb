//! Apache Airflow connections, in the formats of `airflow connections export` ("Managing Connections").

use crate::Violation;
use crate::json::flattened;
use crate::reading::{Fields, Pair, interpret, key_file};
use crate::table::{table, text};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::borrow::Cow;
use url::form_urlencoded;
use vault_core::credential::CredentialType;

/// A connection, from either its JSON object or its URI.
struct Connection {
    kind: String,
    host: String,
    port: String,
    schema: String,
    login: String,
    password: String,
    extra: Map<String, Value>,
}

/// Returns the connection type in a connection URI, or `None` if it is not one that the table lists.
pub(crate) fn kind(address: &str) -> Option<String> {
    let (scheme, _) = address.split_once("://")?;
    let kind = scheme.replace('-', "_");
    (kind != "s3" && table().airflow.kind(&kind).is_some()).then_some(kind)
}

pub(crate) fn of_object(members: &Map<String, Value>, line: usize) -> Result<Fields, Violation> {
    let member = |name: &str| members.get(name).map(text).unwrap_or_default();
    let extra = match members.get("extra_dejson").or_else(|| members.get("extra")) {
        Some(Value::String(text)) if !text.is_empty() => {
            serde_json::from_str(text).map_err(|_| Violation::of(line, "extra", "json"))?
        }
        Some(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    };
    let (kind, host, port, schema) = (member("conn_type"), member("host"), member("port"), member("schema"));
    credential(
        Connection { kind, host, port, schema, login: member("login"), password: member("password"), extra },
        line,
    )
}

/// Reads a connection URI: `type://login:password@host:port/schema?name=value`.
pub(crate) fn of_address(address: &str, line: usize) -> Result<Fields, Violation> {
    // Not a valid URL: the scheme may contain underscores, and the host may be empty.
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (login, password) = user.split_once(':').unwrap_or((user, ""));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let (host, port) = host.rsplit_once(':').filter(|(_, port)| is_port(port)).unwrap_or((host, ""));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let parameters = form_urlencoded::parse(query.as_bytes());
    let mut extra: Map<String, Value> =
        parameters.map(|(name, value)| (name.into_owned(), Value::from(value.into_owned()))).collect();
    // Airflow encodes nested parameters as one JSON object in this parameter.
    if let Some(Value::String(text)) = extra.remove("__extra__") {
        extra = serde_json::from_str(&text).map_err(|_| Violation::of(line, "extra", "json"))?;
    }
    credential(
        Connection {
            kind: scheme.replace('-', "_"),
            host: decoded(host),
            port: port.to_owned(),
            schema: decoded(path.split('/').next().unwrap_or_default()),
            login: decoded(login),
            password: decoded(password),
            extra,
        },
        line,
    )
}

fn credential(connection: Connection, line: usize) -> Result<Fields, Violation> {
    let Connection { kind: named, host, port, schema, login, password, extra } = connection;
    let Some(kind) = table().airflow.kind(&named) else {
        return Err(Violation::of(line, "conn_type", if named.is_empty() { "no-type" } else { "type" }));
    };
    let mut pairs = flattened(&extra, "", &|_| line);
    // Settings of other AWS services do not apply to a bucket.
    pairs.retain(|pair| {
        let service = pair.name.strip_prefix("service_config.");
        service.is_none_or(|name| name.starts_with("s3.") || name.starts_with("sts."))
    });
    for pair in &mut pairs {
        // Older Airflow releases prefix the name with the provider (`extra__aws__...`).
        let bare = pair.name.rsplit_once("__").map(|(_, bare)| bare.to_owned());
        let own = bare.or_else(|| pair.name.strip_prefix("service_config.").map(str::to_owned));
        pair.counts_as = own.map(Cow::Owned);
    }
    let has = |name: &str| pairs.iter().any(|pair| pair.normal() == name && !text(&pair.value).is_empty());
    let mut more = Vec::new();
    let mut add = |name: &str, value: String, counts_as| more.push(Pair::new(name, value, line).counting_as(counts_as));
    match kind {
        CredentialType::S3 => {
            if !host.is_empty() {
                let scheme = if matches!(&*schema, "http" | "https") { schema } else { String::new() };
                add("host", host, "host");
                add("port", port, "port");
                add("schema", scheme, "scheme");
            }
            add("login", login, "access_key_id");
            add("password", password, "secret_access_key");
        }
        CredentialType::AzureIdentity => {
            let is_application = has("tenantid") || has("tenant");
            // Without a tenant, the login is the storage account, and the password is its key.
            let account = if host.is_empty() { "account" } else { "ignored" };
            add("login", login, if is_application { "client_id" } else { account });
            add("password", password, if is_application { "client_secret" } else { "account_key" });
            if !has("connectionstring") {
                add("host", host, "address");
            }
        }
        _ => {
            let is_key = |pair: &Pair| pair.normal().contains("keyfiledict") && key_file(&pair.value).is_some();
            if !pairs.iter().any(is_key) {
                return Err(match pairs.iter().find(|pair| pair.normal() == "keypath") {
                    Some(path) => Violation::of(line, "key_path", "key-of-host").because(&text(&path.value)),
                    None => Violation::of(line, "keyfile_dict", "no-key"),
                });
            }
        }
    }
    pairs.extend(more);
    interpret(&pairs, Some(kind), line).unwrap_or_else(|| Err(Violation::of(line, "", "unknown")))
}
