//! Credential data with resolved references.

use super::document::{Credential, Datum, Receiver, datum};
use super::{At, Violation, beneath};
use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value};
use std::env;
use std::path::Path;
use vault_core::Error;
use vault_core::credential::CredentialData;
use vault_core::field::child;
use vault_core::receiver::check_url;

/// The largest file that is read, in bytes.
const MAX_FILE: usize = 64 * 1024;

/// Returns the data for the HTTP API, or all violations.
pub(crate) fn resolve(credential: &Credential) -> Result<Zeroizing<String>, Vec<Violation>> {
    let (at, mut data, mut violations) = (&credential.at, Map::new(), Vec::new());
    for (name, source) in &credential.request.data {
        match value(at, source) {
            Ok(value) => drop(data.insert(name.clone(), value)),
            Err(reason) => violations.push(at.violation(&child("data", name), reason)),
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
    let Some(kind) = credential.kind() else { return Err(vec![at.violation("type", "is unknown")]) };
    let text = Zeroizing::new(Value::Object(data).to_string());
    match CredentialData::from_json(kind, text.as_bytes()) {
        Ok(_) => Ok(text),
        Err(Error::Invalid(errors)) => {
            Err(errors.iter().map(|error| at.violation(&format!("data{}", error.pointer), &*error.detail)).collect())
        }
        Err(error) => Err(vec![at.violation("data", error.to_string())]),
    }
}

/// Returns the URL of a webhook, or a violation.
pub(crate) fn url(receiver: &Receiver) -> Result<Option<Zeroizing<String>>, Violation> {
    let Some(source) = &receiver.request.url else { return Ok(None) };
    let violation = |reason: String| receiver.at.violation("url", reason);
    let Value::String(text) = value(&receiver.at, source).map_err(violation)? else { return Ok(None) };
    let text = Zeroizing::new(text);
    let url = check_url(&text, "url").map_err(|error| violation(error.detail.into_owned()))?;
    if url.masked() != receiver.request.text() {
        return Err(violation(format!("is of {}, and webhook is {}", url.masked(), receiver.request.text())));
    }
    Ok(Some(text))
}

fn value(at: &At, source: &Value) -> Result<Value, String> {
    match datum(source) {
        Some(Datum::Variable(variable)) => env::var(variable)
            .map(Value::from)
            .map_err(|_| format!("the environment variable {variable} is not set, or is no text")),
        Some(Datum::File(file)) => read(&at.file, file).map(Value::from),
        Some(Datum::Plain(_)) | None => Ok(source.clone()),
    }
}

/// Reads a file below the directory of the document, without one trailing line feed.
fn read(document: &Path, file: &str) -> Result<String, String> {
    let text = beneath::read(document.parent().unwrap_or(Path::new("")), Path::new(file), MAX_FILE)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
