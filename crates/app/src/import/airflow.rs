//! Connections of Apache Airflow, as `airflow connections export` writes them ("Managing Connections").

use super::fields::Fields;
use super::kv::{line_of, syntax};
use super::{Entry, Flaw};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::form_urlencoded;
use vault_core::credential::CredentialType;

/// A connection, whichever way it is written.
struct Connection {
    kind: String,
    host: String,
    login: String,
    password: String,
    extra: Map<String, Value>,
}

pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Flaw> {
    let connections: Map<String, Value> = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    Ok(connections
        .into_iter()
        .map(|(name, value)| {
            let line = line_of(text, &name);
            let content = connection(&value, line).and_then(|connection| credential(connection, line));
            Entry { name, content }
        })
        .collect())
}

fn connection(value: &Value, line: usize) -> Result<Connection, Flaw> {
    match value {
        Value::String(address) => of_address(address, line),
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let extra = match members.get("extra") {
                Some(Value::String(text)) if !text.is_empty() => serde_json::from_str(text)
                    .map_err(|_| Flaw::of(line, "extra", "it is a string that is no JSON object"))?,
                Some(Value::Object(members)) => members.clone(),
                _ => Map::new(),
            };
            let (kind, host) = (text("conn_type"), text("host"));
            Ok(Connection { kind, host, login: text("login"), password: text("password"), extra })
        }
        _ => Err(Flaw::new(line, "a connection must be an object or a URI")),
    }
}

/// `type://login:password@host?name=value`.
fn of_address(address: &str, line: usize) -> Result<Connection, Flaw> {
    // No URL in the strict sense: its scheme may have underscores, and its host may be empty.
    let (kind, rest) = address.split_once("://").ok_or_else(|| Flaw::new(line, "the connection is no URI"))?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (login, password) = user.split_once(':').unwrap_or((user, ""));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let parameters = form_urlencoded::parse(query.as_bytes());
    let mut extra: Map<String, Value> =
        parameters.map(|(name, value)| (name.into_owned(), Value::from(value.into_owned()))).collect();
    // Nested ones are a JSON object in one parameter.
    if let Some(Value::String(text)) = extra.remove("__extra__") {
        extra = serde_json::from_str(&text).map_err(|_| Flaw::of(line, "__extra__", "it is no JSON object"))?;
    }
    Ok(Connection {
        kind: kind.replace('-', "_"),
        host: decoded(host),
        login: decoded(login),
        password: decoded(password),
        extra,
    })
}

fn credential(connection: Connection, line: usize) -> Result<Fields, Flaw> {
    let Connection { kind, host, login, password, extra } = connection;
    let fields = |kind| {
        let mut fields = Fields::new(kind, line);
        for (name, value) in &extra {
            // Older releases name the provider, too.
            let bare = name.rsplit_once("__").map_or(&**name, |(_, bare)| bare);
            fields.set_called(bare, value.clone(), line);
        }
        fields
    };
    match &*kind {
        "aws" | "s3" => {
            let mut fields = fields(CredentialType::S3);
            let service = extra.get("service_config").and_then(|services| services.get("s3"));
            if let Some(bucket) = service.and_then(|s3| s3.get("bucket_name")) {
                fields.set("bucket", bucket.clone(), line, "service_config");
            }
            fields.set("access_key_id", login, line, "login");
            fields.set("secret_access_key", password, line, "password");
            Ok(fields)
        }
        "google_cloud_platform" => {
            let fields = fields(CredentialType::Gcs);
            if fields.get("service_account_key").is_none() {
                return Err(Flaw::of(line, "keyfile_dict", "the connection has no key of a service account in it"));
            }
            Ok(fields)
        }
        "wasb" | "azure" | "adls" | "azure_data_lake" => {
            let mut fields = fields(CredentialType::AzureIdentity);
            fields.set("client_id", login, line, "login");
            fields.set("client_secret", password, line, "password");
            let account = host.trim_start_matches("https://").split('.').next().unwrap_or_default();
            if fields.get("connection_string").is_none() && !account.is_empty() {
                let connection =
                    format!("DefaultEndpointsProtocol=https;AccountName={account};EndpointSuffix=core.windows.net");
                fields.set("connection_string", connection, line, "host");
            }
            Ok(fields)
        }
        "" => Err(Flaw::of(line, "conn_type", "the connection has none")),
        other => {
            let reason = format!("{other} cannot be kept in a vault; aws, wasb, adls and google_cloud_platform can");
            Err(Flaw::of(line, "conn_type", reason))
        }
    }
}
