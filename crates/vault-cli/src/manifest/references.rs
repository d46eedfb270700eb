//! Credential data with resolved references.

use super::document::{Credential, Datum, Receiver};
use super::{At, Violation, beneath};
use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value};
use std::env;
use std::path::Path;
use vault_core::Error;
use vault_core::credential::CredentialData;
use vault_core::receiver::check_url;

/// The largest file that is read, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// Returns the data for the HTTP API, or all violations.
pub(crate) fn resolve(credential: &Credential) -> Result<Zeroizing<String>, Vec<Violation>> {
    let (mut data, mut violations) = (Map::new(), Vec::new());
    for (name, (line, datum)) in &credential.data {
        let at = At { line: *line, ..credential.at.clone() };
        match value(&at, datum) {
            Ok(value) => drop(data.insert(name.clone(), value)),
            Err(reason) => violations.push(Violation { at, field: name.clone(), reason }),
        }
    }
    if !violations.is_empty() {
        return Err(violations);
    }
    // Files with header fields contain JSON.
    if let Some(Value::String(text)) = data.get("headers") {
        let headers = serde_json::from_str(text).unwrap_or_else(|_| Value::from(&**text));
        data.insert("headers".to_owned(), headers);
    }
    let violation = |field: &str, reason: String| {
        let line = credential.data.get(field).map_or(credential.at.line, |(line, _)| *line);
        vec![Violation { at: At { line, ..credential.at.clone() }, field: field.to_owned(), reason }]
    };
    let text = Zeroizing::new(serde_json::to_string(&data).map_err(|_| violation("data", "is no JSON".to_owned()))?);
    match CredentialData::from_json(credential.kind, text.as_bytes()) {
        Ok(_) => Ok(text),
        Err(Error::Invalid(errors)) => Err(errors
            .iter()
            .flat_map(|error| {
                let name = error.pointer.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
                violation(&name, error.detail.to_string())
            })
            .collect()),
        Err(error) => Err(violation("data", error.to_string())),
    }
}

/// Returns the URL of a webhook, or a violation.
pub(crate) fn url(receiver: &Receiver) -> Result<Option<Zeroizing<String>>, Violation> {
    let Some((line, datum)) = &receiver.url else { return Ok(None) };
    let at = At { line: *line, ..receiver.at.clone() };
    let violation = |reason: String| Violation { at: at.clone(), field: "url".to_owned(), reason };
    let Value::String(text) = value(&at, datum).map_err(violation)? else { return Ok(None) };
    let text = Zeroizing::new(text);
    let url = check_url(&text, "url").map_err(|error| violation(error.detail.into_owned()))?;
    if url.masked() != receiver.address {
        return Err(violation(format!("is of {}, and webhook is {}", url.masked(), receiver.address)));
    }
    Ok(Some(text))
}

fn value(at: &At, datum: &Datum) -> Result<Value, String> {
    match datum {
        Datum::Plain(value) => Ok(value.clone()),
        Datum::Variable(variable) => env::var(variable)
            .map(Value::from)
            .map_err(|_| format!("the environment variable {variable} is not set, or is no text")),
        Datum::File(file) => read(&at.file, file).map(Value::from),
    }
}

/// Reads a file below the directory of the document, without one trailing line feed.
fn read(document: &Path, file: &str) -> Result<String, String> {
    let text = beneath::read(document.parent().unwrap_or(Path::new("")), Path::new(file), MAX_FILE)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
