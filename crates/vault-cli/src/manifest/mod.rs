//! Configuration as code: documents describe users, integrations, receivers and credentials. `export` writes the
//! existing objects as a document, `apply` makes the changes that documents require.

pub(crate) mod beneath;
pub(crate) mod document;
pub(crate) mod export;
pub(crate) mod plan;
pub(crate) mod references;
mod validate;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Label that identifies a credential within its namespace.
pub(crate) const NAME: &str = "name";
/// Label with the set that contains a credential.
pub(crate) const MANAGED_BY: &str = "managed-by";
/// Label with the number of the last sent data.
pub(crate) const DATA_VERSION: &str = "data-version";
/// Labels that only these commands set.
const OWN_LABELS: [&str; 3] = [NAME, MANAGED_BY, DATA_VERSION];

/// The position of an object in a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct At {
    pub(crate) file: PathBuf,
    /// Line numbers, from 1, of the object (empty path) and its fields (`data/bucket`).
    pub(crate) lines: BTreeMap<String, usize>,
}

impl At {
    /// Returns the position of the field at `path`.
    fn below(&self, path: &str) -> Self {
        let rest = |(field, line): (&String, &usize)| {
            let rest = field.strip_prefix(path)?;
            let rest = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
            Some((rest.to_owned(), *line))
        };
        let within = self.lines.range(path.to_owned()..).take_while(|(field, _)| field.starts_with(path));
        Self { file: self.file.clone(), lines: within.filter_map(rest).collect() }
    }

    /// Creates the violation of a field, given by its pointer. Its line is that of the innermost value that is present.
    pub(crate) fn violation(&self, pointer: &str, reason: impl Into<String>) -> Violation {
        let field = pointer.trim_start_matches('/');
        let mut path = field;
        let line = loop {
            match self.lines.get(path) {
                Some(line) => break *line,
                None if path.is_empty() => break 0,
                None => path = path.rsplit_once('/').map_or("", |(above, _)| above),
            }
        };
        Violation { file: self.file.clone(), line, field: field.to_owned(), reason: reason.into() }
    }
}

/// A violation in a document. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    /// The field in the object: `data/bucket`.
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, field, reason } = self;
        match field.is_empty() {
            true => write!(f, "{}:{line}: {reason}", file.display()),
            false => write!(f, "{}:{line}: {field}: {reason}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests;
