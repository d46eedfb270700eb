//! Credential data, read from a file, from standard input, or field by field from the terminal.

use super::prompt;
use crate::failure::Failure;
use crate::secret_file;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use vault_client::WireJson;
use vault_core::credential::{CredentialType, FieldClass, FieldSpec, ValueKind};

/// Maximum size of the data in bytes, equal to the server's limit.
const MAX_DATA: usize = 64 * 1024;
/// The flag that replaces prompts in scripts.
const FLAG: &str = "--data-file";

/// The data of a credential. If a user typed it, single fields can be requested again.
pub struct Data {
    members: Map<String, Value>,
    /// The fields of the type, if a user typed the data.
    typed: Option<&'static [FieldSpec]>,
    /// The text of a file, unless the data was modified. It preserves repeated fields, so that the server can reject
    /// them by name.
    text: Option<Zeroizing<String>>,
}

/// A field with different values in two versions.
pub(crate) struct Difference {
    pub field: String,
    pub before: String,
    pub after: String,
}

impl Data {
    /// Returns the data as the request contains it.
    pub(crate) fn to_wire(&self) -> Result<WireJson, Failure> {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => Zeroizing::new(serde_json::to_string(&self.members)?),
        };
        Ok(SecretString::from(text.as_str()).into())
    }

    /// Copies locations such as bucket and endpoint from the version `before`, unless the data contains them. Removes
    /// fields that are null. Returns the names of the copied fields.
    pub(crate) fn carry_over(&mut self, kind: &str, before: &Map<String, Value>) -> Vec<&'static str> {
        let mut taken = Vec::new();
        let fields = CredentialType::parse(kind).map(CredentialType::fields).unwrap_or_default();
        for field in fields.iter().filter(|field| field.class == FieldClass::Location) {
            if let Some(value) = before.get(field.name).filter(|_| !self.members.contains_key(field.name)) {
                self.members.insert(field.name.to_owned(), value.clone());
                taken.push(field.name);
            }
        }
        let length = self.members.len();
        self.members.retain(|_, value| !value.is_null());
        if !taken.is_empty() || self.members.len() != length {
            self.text = None;
        }
        taken
    }

    /// Returns the visible differences to the version `before`: locations, and the last characters of IDs.
    pub(crate) fn differences(&self, kind: &str, before: &Map<String, Value>) -> Vec<Difference> {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let fields = CredentialType::parse(kind).map(CredentialType::fields).unwrap_or_default();
        let difference = |field: &FieldSpec| {
            let (before, after) = (before.get(field.name).map(shown), self.members.get(field.name).map(shown));
            let same = match field.class {
                FieldClass::Location => before == after,
                // A version shows only the end of an ID.
                FieldClass::Id => match (&before, &after) {
                    (Some(before), Some(after)) => after.ends_with(before.trim_start_matches(['…', '.', '*'])),
                    (before, after) => before == after,
                },
                FieldClass::Secret => true,
            };
            let after = match field.class {
                FieldClass::Id => after.map(|after| ending(&after)),
                _ => after,
            };
            let text = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
            (!same).then(|| Difference { field: field.name.to_owned(), before: text(before), after: text(after) })
        };
        fields.iter().filter_map(difference).collect()
    }

    /// Returns the required secrets of the type that are missing.
    pub(crate) fn missing_secrets(&self, kind: &str) -> Vec<&'static str> {
        let fields = CredentialType::parse(kind).map(CredentialType::fields).unwrap_or_default();
        let is_missing = |field: &&FieldSpec| {
            field.required && field.class == FieldClass::Secret && !self.members.contains_key(field.name)
        };
        fields.iter().filter(is_missing).map(|field| field.name).collect()
    }

    /// Prints why the server rejected fields, given by pointers (`/data/bucket`), and prompts for them again. Returns
    /// `false` if the data was not typed, or if the server rejected something else.
    pub(crate) fn ask_again(&mut self, refused: &[(String, String)]) -> Result<bool, Failure> {
        let Some(fields) = self.typed else { return Ok(false) };
        let of = |pointer: &str| {
            let name = pointer.strip_prefix("/data/")?.split('/').next()?.to_owned();
            fields.iter().find(|field| field.name == name)
        };
        if refused.is_empty() || refused.iter().any(|(pointer, _)| of(pointer).is_none()) {
            return Ok(false);
        }
        for (pointer, detail) in refused {
            if let Some(field) = of(pointer) {
                writeln!(io::stderr(), "{}: {}", field.name, printable(detail))?;
                self.members.insert(field.name.to_owned(), value(field)?);
            }
        }
        Ok(true)
    }
}

/// Returns the end of an ID.
fn ending(id: &str) -> String {
    let skipped = id.chars().count().saturating_sub(4);
    format!("…{}", id.chars().skip(skipped).collect::<String>())
}

/// Removes control characters from a server's text, which a terminal would interpret.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Reads the data from `file`, or prompts for each field of the type that `kind` returns.
pub fn read(file: Option<&Path>, kind: impl FnOnce() -> Result<String, Failure>) -> Result<Data, Failure> {
    if let Some(file) = file {
        return in_file(file);
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "data required. Pass --data-file FILE, or --data-file - to read it from standard input",
        ));
    }
    let kind = kind()?;
    let names = || CredentialType::ALL.map(CredentialType::as_str).join(", ");
    let known = CredentialType::parse(&kind);
    let known =
        known.ok_or_else(|| Failure::usage(format!("--type: {kind} is unknown; it must be one of {}", names())))?;
    asked(known)
}

fn in_file(file: &Path) -> Result<Data, Failure> {
    let bytes = secret_file::read_or_stdin(FLAG, file, MAX_DATA)?;
    let text = std::str::from_utf8(&bytes).ok();
    let found = text.and_then(|text| Some((text, serde_json::from_str::<Map<String, Value>>(text).ok()?)));
    let found = found.ok_or_else(|| Failure::new(format!("{FLAG}: {} does not contain a JSON object", file.display())));
    let (text, members) = found?;
    Ok(Data { members, typed: None, text: Some(Zeroizing::new(text.to_owned())) })
}

/// Prompts for the required fields, and then for the names of optional fields.
fn asked(kind: CredentialType) -> Result<Data, Failure> {
    let mut data = Map::new();
    let (required, mut optional): (Vec<&FieldSpec>, Vec<&FieldSpec>) =
        kind.fields().iter().partition(|field| field.required);
    for field in required {
        data.insert(field.name.to_owned(), value(field)?);
    }
    let names = |fields: &[&FieldSpec]| fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
    if !optional.is_empty() {
        writeln!(io::stderr(), "Optional: {}", names(&optional))?;
    }
    while !optional.is_empty() {
        let name = prompt::line(FLAG, "Optional field, or Enter to finish")?;
        if name.is_empty() {
            break;
        }
        let Some(at) = optional.iter().position(|field| field.name == name) else {
            writeln!(io::stderr(), "{name} is not one of {}.", names(&optional))?;
            continue;
        };
        let field = optional.remove(at);
        data.insert(field.name.to_owned(), value(field)?);
    }
    Ok(Data { members: data, typed: Some(kind.fields()), text: None })
}

/// The bucket, or the list of buckets that commas separate.
pub(crate) fn buckets(text: &str) -> Value {
    match text.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
        [only] => Value::from(*only),
        several => Value::from(several),
    }
}

/// Prompts for the value of a field until it has the right form. Only the server validates it further.
fn value(field: &FieldSpec) -> Result<Value, Failure> {
    loop {
        let found = match (field.kind, field.class) {
            (ValueKind::Flag, _) => match prompt::line(FLAG, &format!("{} (yes or no)", field.name))?.as_str() {
                "yes" | "y" | "true" => Some(Value::Bool(true)),
                "no" | "n" | "false" => Some(Value::Bool(false)),
                _ => None,
            },
            (ValueKind::KeyFile, _) => {
                let path = prompt::line(FLAG, &format!("{} (path of the key file)", field.name))?;
                let read = secret_file::read(field.name, Path::new(&path), MAX_DATA)?;
                serde_json::from_slice(&read).ok()
            }
            (ValueKind::Headers, _) => {
                let answer = prompt::hidden(FLAG, &format!("{} (a JSON object, hidden)", field.name))?;
                serde_json::from_str(answer.expose_secret()).ok() // sent to the server
            }
            (_, FieldClass::Secret) => {
                let answer = prompt::hidden(FLAG, &format!("{} (hidden)", field.name))?;
                Some(Value::from(answer.expose_secret())) // sent to the server
            }
            (ValueKind::Bucket, _) => {
                Some(buckets(&prompt::line(FLAG, &format!("{} (several: separated by commas)", field.name))?))
            }
            _ => Some(Value::from(prompt::line(FLAG, field.name)?)),
        };
        match found.filter(|value| value.as_str() != Some("")) {
            Some(value) => return Ok(value),
            None => writeln!(io::stderr(), "{} needs a value of this form.", field.name)?,
        }
    }
}
