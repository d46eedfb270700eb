//! Interpretation of names and values as a credential: its type and its fields.

use crate::Violation;
use crate::azure;
use crate::table::{normal, table, text};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map;
use vault_core::credential::CredentialType;
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// A name and its value.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// Line number, from 1.
    pub(crate) line: usize,
    /// The name to use for the lookup in the table, if it differs from `name`.
    pub(crate) counts_as: Option<Cow<'static, str>>,
}

impl Pair {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<Value>, line: usize) -> Self {
        Self { name: name.into(), value: value.into(), line, counts_as: None }
    }

    pub(crate) fn counting_as(self, name: &'static str) -> Self {
        Self { counts_as: Some(Cow::Borrowed(name)), ..self }
    }

    /// Returns the name to look up in the table.
    fn known_as(&self) -> &str {
        self.counts_as.as_deref().unwrap_or(&self.name)
    }

    /// Returns the name in the table's normal form.
    pub(crate) fn normal(&self) -> String {
        normal(self.known_as())
    }

    fn is_empty(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            _ => false,
        }
    }
}

/// The value of a field and its position in the file.
#[derive(Clone)]
pub struct Field {
    value: Value,
    /// Line number, from 1.
    pub line: usize,
    /// Name in the file.
    pub called: String,
    rank: Option<usize>,
}

impl Field {
    /// Returns the value for the preview. Must not be called for a secret field.
    pub fn shown(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

/// The fields of a credential in a text.
pub struct Fields {
    /// Type of the credential.
    pub kind: CredentialType,
    /// Line number of the first line.
    pub line: usize,
    fields: BTreeMap<String, Field>,
    /// Names that do not match any field.
    pub left_out: Vec<String>,
    /// What is missing, unless an endpoint or a connection string is added. The type itself does not require it.
    pub needs: Option<Violation>,
    /// Expiry time, if the file contains one.
    pub expires_at: Option<String>,
}

impl Fields {
    pub(crate) fn new(kind: CredentialType, line: usize) -> Self {
        Self { kind, line, fields: BTreeMap::new(), left_out: Vec::new(), needs: None, expires_at: None }
    }

    /// Returns the field `name`.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// Sets the field `name`, which the file calls `called`.
    pub fn set(&mut self, name: &str, value: impl Into<Value>, line: usize, called: &str) {
        let field = Field { value: value.into(), line, called: called.to_owned(), rank: None };
        self.fields.insert(name.to_owned(), field);
    }

    /// Returns the fields as the HTTP API accepts them.
    ///
    /// # Errors
    /// A value cannot be written, which no reader causes.
    pub fn to_json(&self) -> Result<Zeroizing<String>, serde_json::Error> {
        let members: Map<String, Value> =
            self.fields.iter().map(|(name, field)| (name.clone(), field.value.clone())).collect();
        serde_json::to_string(&members).map(Zeroizing::new)
    }
}

/// Pairs, assigned to the fields of a type.
pub(crate) struct Sorted {
    pub(crate) line: usize,
    found: BTreeMap<String, Field>,
    pub(crate) left_out: Vec<String>,
    foreign: Option<(String, usize)>,
}

/// Fields that several names can set. The name with the best rank takes precedence.
const RANKED: [&str; 2] = ["region", "expires_at"];
const WITHOUT_SPACES: [&str; 10] = [
    "access_key_id",
    "secret_access_key",
    "session_token",
    "bucket",
    "region",
    "role_arn",
    "tenant_id",
    "client_id",
    "client_secret",
    "connection_string",
];

impl Sorted {
    fn of(pairs: &[Pair], kind: CredentialType, line: usize) -> Result<Self, Violation> {
        let mut sorted = Self { line, found: BTreeMap::new(), left_out: Vec::new(), foreign: None };
        for pair in pairs.iter().filter(|pair| !pair.is_empty()) {
            sorted.sort(pair, kind)?;
        }
        for field in WITHOUT_SPACES {
            if sorted.text(field).contains(char::is_whitespace) {
                return Err(sorted.violation(field, "spaces"));
            }
        }
        Ok(sorted)
    }

    fn sort(&mut self, pair: &Pair, kind: CredentialType) -> Result<(), Violation> {
        let (name, table) = (pair.normal(), table());
        let violation = |kind| Err(Violation::of(pair.line, &pair.name, kind));
        let field = |rank| Field { value: pair.value.clone(), line: pair.line, called: pair.name.clone(), rank };
        if table.is_harmless(&name, &pair.value) {
            self.left_out.push(pair.name.clone());
        } else if let Some(kind) = table.refusal(&name, &pair.value) {
            return violation(kind);
        } else if table.is_switch(&name) {
        } else if let Some(found) = table.field(kind, &name) {
            if pair.value.is_array() && found.field != "endpoint_list" {
                return violation("text");
            }
            if found.foreign && self.foreign.is_none() {
                self.foreign = Some((pair.name.clone(), pair.line));
            }
            match self.found.entry(found.field.to_owned()) {
                btree_map::Entry::Vacant(entry) => {
                    entry.insert(field(found.rank));
                }
                btree_map::Entry::Occupied(mut entry) => {
                    if bare(&entry.get().value) != bare(&pair.value) {
                        if !RANKED.contains(&found.field) {
                            return violation("conflict");
                        }
                        let is_better = found.rank.is_some_and(|rank| entry.get().rank.is_none_or(|old| rank < old));
                        if is_better {
                            entry.insert(field(found.rank));
                        }
                    }
                }
            }
        } else if name == "token" && kind == CredentialType::S3 {
            self.found.insert("token".to_owned(), field(None));
        } else if table.looks_like_address(kind, pair.known_as(), &text(&pair.value)) {
            return violation("not-understood");
        } else {
            self.left_out.push(pair.name.clone());
        }
        Ok(())
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.found.contains_key(field)
    }

    fn value(&self, field: &str) -> &Value {
        self.found.get(field).map_or(&Value::Null, |field| &field.value)
    }

    /// Returns the text of a field, or an empty string.
    pub(crate) fn text(&self, field: &str) -> String {
        text(self.value(field))
    }

    /// Returns the name of a field in the file.
    pub(crate) fn called<'a>(&'a self, field: &'a str) -> &'a str {
        self.found.get(field).map_or(field, |found| &found.called)
    }

    pub(crate) fn line(&self, field: &str) -> usize {
        self.found.get(field).map_or(self.line, |found| found.line)
    }

    pub(crate) fn violation(&self, field: &str, kind: &str) -> Violation {
        Violation::of(self.line(field), self.called(field), kind)
    }

    /// Copies a field to `fields`, if it has a text.
    pub(crate) fn copy(&self, field: &str, fields: &mut Fields) {
        if self.has(field) {
            fields.set(field, self.text(field), self.line(field), self.called(field));
        }
    }

    fn address(&self, field: &str) -> Result<String, Violation> {
        let given = self.text(field);
        let scheme = match self.text("scheme").to_lowercase().trim_end_matches("://") {
            "" if table().flag(self.value("secure")) == Some(Some(false)) => "http".to_owned(),
            "" => "https".to_owned(),
            scheme => scheme.to_owned(),
        };
        let has_scheme = given.contains("://");
        let whole = if has_scheme { given.clone() } else { format!("{scheme}://{given}") };
        let is_host = has_scheme || given.contains(['.', ':']) || given == "localhost";
        let address = parse_address(&whole).filter(|_| is_host);
        let Some((scheme, host, port)) = address else { return Err(self.violation(field, "address")) };
        let own = if scheme == "http" { "80" } else { "443" };
        let port = match (port, self.text("port")) {
            (Some(port), _) => format!(":{port}"),
            (None, port) if port.is_empty() || port == own => String::new(),
            (None, port) => format!(":{port}"),
        };
        Ok(format!("{scheme}://{host}{port}"))
    }

    fn path_style(&self) -> Result<Option<(bool, &str)>, Violation> {
        for (field, inverse) in [("path_style_access", false), ("virtual_hosted", true)] {
            if self.has(field) {
                match table().flag(self.value(field)) {
                    None => return Err(self.violation(field, "style")),
                    Some(Some(flag)) => return Ok(Some((flag != inverse, field))),
                    Some(None) => {}
                }
            }
        }
        let host = self.text("host_bucket").to_lowercase();
        let has_bucket = ["%(bucket)", "{bucket", "$bucket"].iter().any(|mark| host.contains(mark));
        Ok((!host.is_empty()).then_some((!has_bucket, "host_bucket")))
    }
}

/// Returns an address without scheme and trailing slash, for comparison. Other values stay unchanged.
fn bare(value: &Value) -> String {
    let text = text(value);
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let rest = &text[scheme.map_or(0, str::len)..];
    rest.strip_suffix('/').unwrap_or(rest).to_owned()
}

/// Parses an address that consists only of scheme, host and port.
fn parse_address(text: &str) -> Option<(String, &str, Option<&str>)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = Some(scheme.to_ascii_lowercase()).filter(|scheme| scheme == "http" || scheme == "https")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((inner, after)) => {
            let is_v6 = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
            let host = is_v6.then(|| &rest[..inner.len() + 2])?;
            (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some(""))?)
        }
        None => rest.split_once(':').unwrap_or((rest, "")),
    };
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if host.is_empty() || !(host.starts_with('[') || host.bytes().all(is_host)) || rest.ends_with(':') {
        return None;
    }
    let port = Some(port).filter(|port| !port.is_empty());
    port.is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit())).then_some((scheme, host, port))
}

/// Returns the Google service account key file in a value.
pub(crate) fn key_file(value: &Value) -> Option<Map<String, Value>> {
    let parsed = match value {
        Value::String(text) if text.trim().starts_with('{') => serde_json::from_str(text).ok()?,
        Value::Object(members) => members.clone(),
        _ => return None,
    };
    let is_key =
        parsed.contains_key("private_key") || parsed.get("type").and_then(Value::as_str) == Some("service_account");
    is_key.then_some(parsed)
}

fn kind_of(pairs: &[Pair]) -> Option<CredentialType> {
    let set: Vec<&Pair> = pairs.iter().filter(|pair| !pair.is_empty()).collect();
    let find = |kind, field: &str| {
        set.iter().rev().find(|pair| table().field(kind, &pair.normal()).is_some_and(|name| name.field == field))
    };
    if find(CredentialType::Gcs, "service_account_key").is_some_and(|pair| key_file(&pair.value).is_some()) {
        return Some(CredentialType::Gcs);
    }
    let s3 = |field| find(CredentialType::S3, field).is_some();
    let azure = |field| find(CredentialType::AzureIdentity, field).is_some();
    if s3("access_key_id") && s3("secret_access_key") {
        return Some(CredentialType::S3);
    }
    let is_application = azure("client_id") && (azure("client_secret") || azure("tenant_id"));
    let has_key = azure("account") && (azure("account_key") || azure("sas"));
    if is_application || has_key || azure("connection_string") || azure("sas_url") {
        return Some(CredentialType::AzureIdentity);
    }
    let is_strong = |pair: &&&Pair| {
        let name = normal(&pair.name);
        let field = table().field(CredentialType::S3, &name).map(|name| name.field);
        !["key", "secret", "access"].contains(&&*name) && matches!(field, Some("access_key_id" | "secret_access_key"))
    };
    if set.iter().find(is_strong).is_some() {
        return Some(CredentialType::S3);
    }
    let is_of_link = |pair: &&Pair| {
        let name = normal(&pair.name);
        table().field(CredentialType::DirectLink, &name).is_some() || table().is_harmless(&name, &Value::Null)
    };
    let url = find(CredentialType::DirectLink, "url").map(|pair| text(&pair.value)).unwrap_or_default();
    let is_link = set.iter().all(is_of_link) && (url.starts_with("https://") || url.starts_with("http://"));
    is_link.then_some(CredentialType::DirectLink)
}

/// Interprets `pairs` as a credential. Returns `None` if they do not identify a type.
pub(crate) fn interpret(
    pairs: &[Pair],
    kind: Option<CredentialType>,
    line: usize,
) -> Option<Result<Fields, Violation>> {
    let kind = kind.or_else(|| kind_of(pairs))?;
    Some(Sorted::of(pairs, kind, line).and_then(|sorted| {
        let mut fields = Fields::new(kind, line);
        match kind {
            CredentialType::S3 => s3(&sorted, &mut fields)?,
            CredentialType::AzureIdentity => azure::read(&sorted, &mut fields)?,
            CredentialType::Gcs => gcs(&sorted, &mut fields)?,
            // Files of other programs contain secrets.
            CredentialType::S3Federated | CredentialType::AzureFederated | CredentialType::GcsFederated => {}
            CredentialType::DirectLink => {
                sorted.copy("url", &mut fields);
                if sorted.value("headers").is_object() {
                    fields.set("headers", sorted.value("headers").clone(), sorted.line("headers"), "headers");
                }
            }
        }
        fields.expires_at = moment(&sorted.text("expires_at")).and_then(Timestamp::to_rfc3339);
        fields.left_out.splice(0..0, sorted.left_out);
        Ok(fields)
    }))
}

/// Parses an expiry time: RFC 3339, or seconds or milliseconds since 1970.
fn moment(text: &str) -> Option<Timestamp> {
    /// Milliseconds of 1973, seconds of the year 5138.
    const LEAST_MILLISECONDS: i64 = 100_000_000_000;
    match text.parse::<i64>() {
        Ok(number) if number >= LEAST_MILLISECONDS => Some(Timestamp::from_millis(number)),
        Ok(number) => number.checked_mul(1_000).map(Timestamp::from_millis),
        Err(_) => Timestamp::from_rfc3339(text),
    }
}

fn s3(sorted: &Sorted, fields: &mut Fields) -> Result<(), Violation> {
    for field in [
        "access_key_id",
        "secret_access_key",
        "session_token",
        "bucket",
        "region",
        "role_arn",
        "external_id",
        "sse_kms_key_id",
        "key_prefix",
    ] {
        sorted.copy(field, fields);
    }
    if sorted.has("token") && !sorted.has("session_token") {
        // The instance metadata service uses this name for the session token. Elsewhere, it may be any token.
        if sorted.text("access_key_id").starts_with("ASIA") {
            fields.set("session_token", sorted.text("token"), sorted.line("token"), sorted.called("token"));
        } else {
            fields.left_out.push(sorted.called("token").to_owned());
        }
    }
    let endpoint = ["endpoint_s3", "endpoint"].into_iter().find(|field| sorted.has(field));
    if let Some(field) = endpoint {
        fields.set("endpoint", sorted.address(field)?, sorted.line(field), sorted.called(field));
    } else if sorted.has("port") {
        return Err(sorted.violation("port", "not-understood"));
    }
    if sorted.has("sts_endpoint") {
        let address = sorted.address("sts_endpoint")?;
        fields.set("sts_endpoint", address, sorted.line("sts_endpoint"), sorted.called("sts_endpoint"));
    }
    if let Some((flag, field)) = sorted.path_style()? {
        fields.set("path_style_access", flag, sorted.line(field), sorted.called(field));
    }
    if sorted.has("endpoint_list") {
        fields.left_out.push(sorted.called("endpoint_list").to_owned());
    }
    if endpoint.is_none() {
        let foreign = sorted.foreign.as_ref().map(|(name, line)| Violation::of(*line, name, "endpoint-needed"));
        let list = sorted.has("endpoint_list").then(|| sorted.violation("endpoint_list", "endpoint-list"));
        fields.needs = list.or(foreign);
    }
    Ok(())
}

fn gcs(sorted: &Sorted, fields: &mut Fields) -> Result<(), Violation> {
    let Some(key) = key_file(sorted.value("service_account_key")) else {
        return Err(sorted.violation("service_account_key", "no-key"));
    };
    let universe = key.get("universe_domain").and_then(Value::as_str).unwrap_or("googleapis.com");
    if sorted.has("universe") && sorted.text("universe") != universe {
        return Err(sorted.violation("universe", "universe"));
    }
    let address = bare(&Value::from(sorted.text("address")));
    let host = address.split('/').next().unwrap_or_default();
    if !host.is_empty() && host != format!("storage.{universe}") {
        return Err(sorted.violation("address", "google-address"));
    }
    let value = sorted.value("service_account_key").clone();
    fields.set("service_account_key", value, sorted.line("service_account_key"), sorted.called("service_account_key"));
    sorted.copy("bucket", fields);
    sorted.copy("key_prefix", fields);
    Ok(())
}
