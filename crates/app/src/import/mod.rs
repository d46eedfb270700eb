//! What other programs keep of storage credentials, read from their files.
//!
//! A file holds entries: remotes, profiles, connections, secrets. Each becomes a credential, or says why it cannot: where in the
//! file, in which field, and never with a value.

mod airflow;
mod aws;
mod fields;
mod ini;
mod kv;
mod rclone;

use crate::failure::Failure;
use fields::Fields;
use std::fmt;
use std::path::Path;
use vault_core::credential::{CredentialData, CredentialType, DataPolicy, FieldClass};
use vault_core::{Error, field::FieldError};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `rclone.conf`, or what `rclone config show` prints.
    Rclone,
    /// The credentials file of the AWS tools.
    Aws,
    /// What `airflow connections export` writes, as JSON.
    Airflow,
    /// What `bao kv get -format=json` or `vault kv get -format=json` prints, or an object of secrets by path.
    Kv,
}

impl Source {
    /// Every one.
    pub(crate) const ALL: [Self; 4] = [Self::Rclone, Self::Aws, Self::Airflow, Self::Kv];

    /// Its name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rclone => "rclone",
            Self::Aws => "aws",
            Self::Airflow => "airflow",
            Self::Kv => "kv",
        }
    }

    /// The source of this name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

/// Why an entry cannot be saved. Never contains a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// The line, from one.
    pub(crate) line: usize,
    /// The field, as the file calls it.
    pub(crate) field: Option<String>,
    pub(crate) reason: String,
}

impl Flaw {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, field: None, reason: reason.into() }
    }

    fn of(line: usize, field: &str, reason: impl Into<String>) -> Self {
        Self { line, field: Some(field.to_owned()), reason: reason.into() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "line {}, {field}: {}", self.line, self.reason),
            None => write!(f, "line {}: {}", self.line, self.reason),
        }
    }
}

/// One entry of a file.
pub(crate) struct Entry {
    /// What the file calls it.
    pub(crate) name: String,
    /// What it is, or why it cannot be taken.
    pub(crate) content: Result<Fields, Flaw>,
}

/// The entries of a file, in its order.
pub(crate) fn read(source: Source, path: &Path, text: &str) -> Result<Vec<Entry>, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let entries = match source {
        Source::Rclone => rclone::entries(path, text),
        Source::Aws => aws::entries(text),
        Source::Airflow => airflow::entries(text),
        Source::Kv => kv::entries(path, text),
    };
    let entries = entries.map_err(|flaw| Failure::new(format!("{}: {flaw}", path.display())))?;
    if entries.is_empty() {
        return Err(Failure::new(format!("{} has no entry of {}", path.display(), source.as_str())));
    }
    Ok(entries)
}

/// Whether the server will take the data of an entry, as far as can be told here: the first flaw.
pub(crate) fn check(fields: &Fields) -> Result<(), Flaw> {
    let body = fields.to_json().map_err(|_| Flaw::new(fields.line, "it is no JSON"))?;
    let Err(error) = CredentialData::from_json(fields.kind, body.as_bytes(), DataPolicy::default()) else {
        return Ok(());
    };
    match error {
        Error::Invalid(flaws) if !flaws.is_empty() => Err(flaw(fields, &flaws[0])),
        error => Err(Flaw::new(fields.line, error.to_string())),
    }
}

fn flaw(fields: &Fields, flaw: &FieldError) -> Flaw {
    let name = flaw.pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
    match fields.get(name) {
        Some(field) => Flaw::of(field.line, &field.called, flaw.detail.to_string()),
        None => Flaw::of(fields.line, name, format!("{} (the credential's {name})", flaw.detail)),
    }
}

/// The field in which a type's bucket or container is.
pub(crate) const fn place(kind: CredentialType) -> Option<&'static str> {
    match kind {
        CredentialType::S3 | CredentialType::Gcs => Some("bucket"),
        CredentialType::AzureIdentity => Some("container"),
        CredentialType::DirectLink => None,
    }
}

/// What of an entry may be seen: its places.
pub(crate) fn shown(fields: &Fields) -> String {
    let places = fields.kind.fields().iter().filter(|field| field.class == FieldClass::Location);
    let shown = places.filter_map(|field| Some(format!("{} {}", field.name, fields.get(field.name)?.text()?)));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
