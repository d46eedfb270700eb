//! The data of a credential: from a file, from standard input, or field by field from the terminal.

use super::prompt;
use crate::failure::Failure;
use crate::run_as::NamedFiles;
use crate::secret_file;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use vault_client::WireJson;
use vault_core::credential::{CredentialType, FieldClass, FieldSpec, ValueKind};

/// The longest data that is read, in bytes: as much as the server takes.
const MAX_DATA: usize = 64 * 1024;
/// The flag for scripts.
const FLAG: &str = "--data-file";

/// The data in `file`, or what the terminal's user answers when asked for each field of the type that `kind` names.
pub(crate) fn read(file: Option<&Path>, kind: impl FnOnce() -> Result<String, Failure>) -> Result<WireJson, Failure> {
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

fn in_file(file: &Path) -> Result<WireJson, Failure> {
    let bytes = secret_file::read_or_stdin(&NamedFiles::default(), FLAG, file, MAX_DATA)?;
    let text = std::str::from_utf8(&bytes).ok();
    let text = text.filter(|text| serde_json::from_str::<Map<String, Value>>(text).is_ok());
    let text = text.ok_or_else(|| Failure::new(format!("{FLAG}: {} does not hold a JSON object", file.display())))?;
    Ok(SecretString::from(text).into())
}

/// Asks for the required fields, and then for the names of others.
fn asked(kind: CredentialType) -> Result<WireJson, Failure> {
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
    let text = Zeroizing::new(serde_json::to_string(&data)?);
    Ok(SecretString::from(text.as_str()).into())
}

/// The value of a field. Asks again until it has its form; whether it is accepted is for the server to say.
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
                let read = secret_file::read(&NamedFiles::default(), field.name, Path::new(&path), MAX_DATA)?;
                serde_json::from_slice(&read).ok()
            }
            (ValueKind::Headers, _) => {
                let answer = prompt::hidden(FLAG, &format!("{} (a JSON object, hidden)", field.name))?;
                serde_json::from_str(answer.expose_secret()).ok() // on its way to the server
            }
            (_, FieldClass::Secret) => {
                let answer = prompt::hidden(FLAG, &format!("{} (hidden)", field.name))?;
                Some(Value::from(answer.expose_secret())) // on its way to the server
            }
            _ => Some(Value::from(prompt::line(FLAG, field.name)?)),
        };
        match found.filter(|value| value.as_str() != Some("")) {
            Some(value) => return Ok(value),
            None => writeln!(io::stderr(), "{} needs a value of this form.", field.name)?,
        }
    }
}
