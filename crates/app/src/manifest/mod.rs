//! An organization described in documents: integrations, credentials and people. What is there is exported as such a document, a plan
//! says what a document would change, and an apply changes it.

pub(crate) mod beneath;
pub(crate) mod document;
pub(crate) mod export;
mod judge;
pub(crate) mod plan;
pub(crate) mod references;
mod yaml;

pub(crate) use judge::judge;
use std::fmt;
use std::path::PathBuf;

/// The label by which a credential is identified in its namespace.
pub(crate) const NAME: &str = "name";
/// The label that says which set describes a credential.
pub(crate) const MANAGED_BY: &str = "managed-by";
/// The label with the number of the data that was sent last.
pub(crate) const DATA_VERSION: &str = "data-version";
/// The labels that are set by these commands alone.
const OWN_LABELS: [&str; 3] = [NAME, MANAGED_BY, DATA_VERSION];

/// A place in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) file: PathBuf,
    /// The line, from one.
    pub(crate) line: usize,
}

/// What is wrong with a document. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flaw {
    pub(crate) at: At,
    /// The field, as the document calls it.
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl fmt::Display for Flaw {
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
