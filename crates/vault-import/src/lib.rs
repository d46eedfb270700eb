//! Readers of storage credentials in files and texts of other programs, without I/O. `orgvault import` reads files with
//! them, and the server reads the text that a user pastes into the console.
//!
//! A text contains entries: remotes, profiles, connections, secrets. Each entry becomes a credential, or an error with
//! its line and field but without any value.
//!
//! ```
//! use vault_import::{Files, Source, read};
//!
//! let text = "export AWS_ACCESS_KEY_ID=EXAMPLE AWS_SECRET_ACCESS_KEY=secret";
//! let entries = read(Source::detect(text), &[("-".as_ref(), text)], &Files::NONE)?;
//! let fields = entries[0].content.as_ref().map_err(ToString::to_string)?;
//! assert_eq!(fields.to_json()?.as_str(), r#"{"access_key_id":"EXAMPLE","secret_access_key":"secret"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod airflow;
mod aws_profiles;
mod azure;
mod ini;
mod json;
mod lines;
mod rclone;
mod reading;
mod table;

pub use reading::{Field, Fields};

use std::fmt;
use std::path::{Path, PathBuf};
use vault_core::credential::{CredentialData, CredentialType, FieldClass};
use vault_core::{Error, field::FieldError};
use zeroize::Zeroizing;

/// The format of a file, named after the program that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `rclone.conf`, or the output of `rclone config show`.
    Rclone,
    /// The config and credentials files of the AWS tools.
    Aws,
    /// The output of `airflow connections export`, as JSON.
    Airflow,
    /// JSON: the output of `bao kv get -format=json` or `vault kv get -format=json`, secrets by path, or a single object.
    Kv,
    /// Variables, labels with values, tables, connection strings and links.
    Text,
}

impl Source {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Rclone, Self::Aws, Self::Airflow, Self::Kv, Self::Text];

    /// Returns the name of the format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rclone => "rclone",
            Self::Aws => "aws",
            Self::Airflow => "airflow",
            Self::Kv => "kv",
            Self::Text => "text",
        }
    }

    /// Returns the format with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text)
    }

    /// Detects the format from the text.
    pub fn detect(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(['{', '[']) {
            match serde_json::from_str::<serde_json::Value>(text) {
                Ok(document) if json::is_airflow(&document) => return Self::Airflow,
                Ok(_) => return Self::Kv,
                Err(_) if text.starts_with('{') => return Self::Kv,
                Err(_) => {}
            }
        }
        if text.contains("RCLONE_ENCRYPT_V0") {
            return Self::Rclone;
        }
        let is_type =
            |line: &str| line.trim().strip_prefix("type").is_some_and(|rest| rest.trim_start().starts_with(['=', ':']));
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
        match lines.next().and_then(|line| ini::header(line, ini::Dialect::Aws)) {
            Some(_) if text.lines().any(is_type) => Self::Rclone,
            Some(_) => Self::Aws,
            None => Self::Text,
        }
    }
}

/// Access to the variables and files that a text refers to.
pub struct Files<'a> {
    /// Returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the content of another file.
    pub read: &'a dyn Fn(&Path) -> Result<String, String>,
}

impl Files<'_> {
    /// For a text that a user sent: a server reads no files of its own for it.
    pub const NONE: Files<'static> = Files {
        variable: &|_| None,
        read: &|_| Err("on your computer. Run `orgvault import` there, or paste the key file itself".to_owned()),
    };

    /// Expands a file name like rclone: `~` at the start, then variables. `folder` is the value of `RCLONE_CONFIG_DIR`.
    fn expanded(&self, folder: &Path, name: &str) -> PathBuf {
        let home = name.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let name = match home.zip((self.variable)("HOME")) {
            Some((rest, home)) => home + rest,
            None => name.to_owned(),
        };
        let mut expanded = String::new();
        let mut rest = &*name;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (variable, behind) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some((variable, behind)) => (variable, behind),
                None => after.split_at(after.find(|c| !is_part(c)).unwrap_or(after.len())),
            };
            match variable {
                "" => expanded.push('$'),
                "RCLONE_CONFIG_DIR" => expanded.push_str(&folder.to_string_lossy()),
                _ => expanded.push_str(&(self.variable)(variable).unwrap_or_default()),
            }
            rest = behind;
        }
        expanded.push_str(rest);
        PathBuf::from(expanded)
    }
}

/// Decodes UTF-8, or UTF-16 with a byte order mark (PowerShell redirection writes it).
///
/// # Errors
/// The bytes are no text. The reason contains none of them.
pub fn decode(bytes: &[u8]) -> Result<Zeroizing<String>, String> {
    let wide = |unit: fn([u8; 2]) -> u16| {
        if !bytes.len().is_multiple_of(2) {
            return Err("ends within a character of UTF-16: the file is incomplete".to_owned());
        }
        let units: Zeroizing<Vec<u16>> =
            Zeroizing::new(bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect());
        String::from_utf16(&units).map_err(|_| "is not valid UTF-16".to_owned())
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes).map(Zeroizing::new),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes).map(Zeroizing::new),
        _ if bytes.contains(&0) => Err("contains zero bytes. If it is UTF-16, save it as UTF-8".to_owned()),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Zeroizing::new(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())),
            Err(error) => Err(format!("byte {} is no UTF-8", error.valid_up_to())),
        },
    }
}

/// Removes the quotes around a text.
fn unquoted(text: &str) -> &str {
    let quotes = ['"', '\'', '`'].into_iter();
    quotes.filter_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote)).next().unwrap_or(text)
}

/// The reason why an entry cannot be saved. Never contains a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Line number, from 1.
    pub line: usize,
    /// Name of the field in the text.
    pub field: Option<String>,
    /// The reason, as a sentence without its full stop.
    pub reason: String,
}

impl Violation {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, field: None, reason: reason.into() }
    }

    /// Creates an error with a reason from the table.
    fn of(line: usize, field: &str, kind: &str) -> Self {
        let field = Some(field.to_owned()).filter(|field| !field.is_empty());
        Self { line, field, reason: table::table().reason(kind).to_owned() }
    }

    fn because(self, detail: &str) -> Self {
        Self { reason: format!("{} {detail}", self.reason), ..self }
    }
}

/// The reason why nothing in a text can be read.
#[derive(Debug)]
pub struct Unreadable {
    /// Path of the text.
    pub path: PathBuf,
    /// The error in it.
    pub violation: Violation,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.violation)
    }
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "line {}, {field}: {}", self.line, self.reason),
            None => write!(f, "line {}: {}", self.line, self.reason),
        }
    }
}

/// An entry of a text.
pub struct Entry {
    /// Name in the text. Empty if it has none.
    pub name: String,
    /// The credential, or the reason why it cannot be imported.
    pub content: Result<Fields, Violation>,
}

/// Reads the entries of all texts of one format, in their order. An entry without a name gets the name of its file. From
/// standard input (`-`), its name stays empty.
///
/// # Errors
/// A text as a whole cannot be read. The error names its path.
pub fn read(source: Source, texts: &[(&Path, &str)], files: &Files<'_>) -> Result<Vec<Entry>, Unreadable> {
    let mut entries = Vec::new();
    let mut sections = Vec::new();
    for (path, text) in texts {
        let found = match source {
            Source::Rclone => rclone::entries(text, path.parent().unwrap_or(Path::new("")), files),
            Source::Airflow | Source::Kv => json::entries(text),
            Source::Text => Ok(lines::entries(text)),
            // Merged below, because a profile can be split across files.
            Source::Aws => ini::sections(text, ini::Dialect::Aws).map(|found| {
                sections.extend(found);
                Vec::new()
            }),
        };
        let mut found = found.map_err(|violation| Unreadable { path: path.to_path_buf(), violation })?;
        let name = path.file_stem().filter(|_| path.as_os_str() != "-");
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        found.iter_mut().filter(|entry| entry.name.is_empty()).for_each(|entry| entry.name.clone_from(&name));
        entries.extend(found);
    }
    match texts {
        // The AWS tools keep the regions of these profiles in another file.
        [(path, _)] if source == Source::Aws && path.file_name().is_some_and(|name| name == "credentials") => {
            let config = (files.read)(&path.with_file_name("config")).ok();
            let config = config.and_then(|text| ini::sections(&text, ini::Dialect::Aws).ok()).unwrap_or_default();
            let own: Vec<String> = sections.iter().map(|section| section.name.clone()).collect();
            sections.extend(config);
            entries.extend(aws_profiles::entries(sections).into_iter().filter(|entry| own.contains(&entry.name)));
        }
        _ => entries.extend(aws_profiles::entries(sections)),
    }
    Ok(entries)
}

/// Checks the data of an entry by the rules of its type.
///
/// # Errors
/// The first violation. The server may reject the data for other reasons.
pub fn check(fields: &Fields) -> Result<(), Violation> {
    if let Some(missing) =
        fields.needs.as_ref().filter(|_| fields.get("endpoint").or(fields.get("connection_string")).is_none())
    {
        return Err(missing.clone());
    }
    let body = fields.to_json().map_err(|_| Violation::new(fields.line, "it is no JSON"))?;
    let Err(error) = CredentialData::from_json(fields.kind, body.as_bytes()) else {
        return Ok(());
    };
    match error {
        Error::Invalid(violations) if !violations.is_empty() => Err(violation(fields, &violations[0])),
        error => Err(Violation::new(fields.line, error.to_string())),
    }
}

fn violation(fields: &Fields, violation: &FieldError) -> Violation {
    let name = violation.pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
    let (line, field, reason) = match fields.get(name) {
        Some(field) => (field.line, &*field.called, violation.detail.to_string()),
        None => (fields.line, name, format!("{} (the credential's {name})", violation.detail)),
    };
    Violation { line, field: Some(field.to_owned()), reason }
}

/// Returns the name of the field that contains the bucket or container.
pub const fn place(kind: CredentialType) -> Option<&'static str> {
    match kind {
        CredentialType::S3 | CredentialType::Gcs | CredentialType::S3Federated | CredentialType::GcsFederated => {
            Some("bucket")
        }
        CredentialType::AzureIdentity | CredentialType::AzureFederated => Some("container"),
        CredentialType::DirectLink => None,
    }
}

/// Returns the non-secret fields of an entry for the preview: its locations.
pub fn shown(fields: &Fields) -> String {
    let places = fields.kind.fields().iter().filter(|field| field.class == FieldClass::Location);
    let shown = places.filter_map(|field| Some(format!("{} {}", field.name, fields.get(field.name)?.shown())));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
