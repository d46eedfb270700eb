//! Configuration as code: documents describe users, integrations, receivers and credentials. `export` writes the
//! existing objects as a document, `apply` makes the changes that documents require.

pub(crate) mod beneath;
pub(crate) mod document;
pub(crate) mod export;
pub(crate) mod plan;
pub(crate) mod references;
mod validate;
mod yaml;

use std::fmt;
use std::path::PathBuf;
pub(crate) use validate::validate;

/// Label that identifies a credential within its namespace.
pub(crate) const NAME: &str = "name";
/// Label with the set that contains a credential.
pub(crate) const MANAGED_BY: &str = "managed-by";
/// Label with the number of the last sent data.
pub(crate) const DATA_VERSION: &str = "data-version";
/// Labels that only these commands set.
const OWN_LABELS: [&str; 3] = [NAME, MANAGED_BY, DATA_VERSION];

/// A position in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) file: PathBuf,
    /// Line number, from 1.
    pub(crate) line: usize,
}

/// A violation in a document. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub(crate) at: At,
    /// Name of the field in the document.
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at: At { file, line }, field, reason } = self;
        match field.is_empty() {
            true => write!(f, "{}:{line}: {reason}", file.display()),
            false => write!(f, "{}:{line}: {field}: {reason}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests;
