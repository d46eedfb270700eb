//! Secrets of the key/value engines of OpenBao and Vault, as `kv get -format=json` prints one, or as an object of them by path.

use super::fields::Fields;
use super::{Entry, Flaw};
use serde_json::{Map, Value};
use std::path::Path;
use vault_core::credential::CredentialType;

pub(super) fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, Flaw> {
    let document: Map<String, Value> = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    // What the tools print has the secret in `data`, that of version 2 once more.
    if let (Some(Value::Object(outer)), true) = (document.get("data"), document.contains_key("request_id")) {
        let inner = match (outer.get("data"), outer.get("metadata")) {
            (Some(Value::Object(inner)), Some(_)) => inner,
            _ => outer,
        };
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(vec![Entry { name, content: secret(inner, text, line_of(text, "data")) }]);
    }
    let entry = |(name, value): (String, Value)| {
        let line = line_of(text, &name);
        let content = match &value {
            Value::Object(members) => secret(members, text, line),
            _ => Err(Flaw::new(line, "a secret must be an object")),
        };
        Entry { name, content }
    };
    Ok(document.into_iter().map(entry).collect())
}

fn secret(members: &Map<String, Value>, text: &str, line: usize) -> Result<Fields, Flaw> {
    let has = |names: &[&str]| members.keys().any(|name| names.contains(&&*name.to_ascii_lowercase()));
    // A key file that was put in member by member.
    if members.get("type").and_then(Value::as_str) == Some("service_account") {
        let mut fields = Fields::new(CredentialType::Gcs, line);
        fields.set("service_account_key", Value::Object(members.clone()), line, "the secret");
        return Ok(fields);
    }
    let kind = if has(&["access_key_id", "access_key", "aws_access_key_id"]) {
        CredentialType::S3
    } else if has(&["service_account_key", "service_account_credentials", "keyfile_dict"]) {
        CredentialType::Gcs
    } else if has(&["client_secret", "azure_client_secret", "arm_client_secret", "connection_string"]) {
        CredentialType::AzureIdentity
    } else if has(&["url"]) {
        CredentialType::DirectLink
    } else {
        let names = members.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(Flaw::new(line, format!("none of its members says what it opens: {names}")));
    };
    let mut fields = Fields::new(kind, line);
    for (name, value) in members {
        fields.set_called(name, value.clone(), line_after(text, line, name));
    }
    Ok(fields)
}

/// A flaw of the text itself. What the reader says of it may hold a part of it, so only the place is told.
pub(super) fn syntax(error: &serde_json::Error) -> Flaw {
    Flaw::new(error.line(), format!("it is no JSON object (column {})", error.column()))
}

/// The line of the first member of this name.
pub(super) fn line_of(text: &str, name: &str) -> usize {
    line_after(text, 1, name)
}

fn line_after(text: &str, first: usize, name: &str) -> usize {
    let quoted = Value::from(name).to_string();
    let is_member = |line: &str| line.split(&quoted).skip(1).any(|rest| rest.trim_start().starts_with(':'));
    let found = text.lines().enumerate().skip(first - 1).find(|(_, line)| is_member(line));
    found.map_or(first, |(index, _)| index + 1)
}
