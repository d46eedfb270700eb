//! Why a database key file is refused, in one line.

use crate::wrapper::WrapError;
use std::io;
use std::path::{Path, PathBuf};
use vault_core::id::KeyId;

/// The database key file could not be read, written or opened.
#[derive(Debug, thiserror::Error)]
#[error("database key {} {flaw}", .path.display())]
pub struct DatabaseKeyError {
    path: PathBuf,
    flaw: DatabaseKeyFlaw,
}

impl DatabaseKeyError {
    pub(super) fn new(path: &Path, flaw: DatabaseKeyFlaw) -> Self {
        Self { path: path.to_owned(), flaw }
    }

    /// Whether the file is wrapped under another root key than the one given.
    pub const fn is_wrong_root_key(&self) -> bool {
        matches!(self.flaw, DatabaseKeyFlaw::OtherRoot { .. })
    }

    /// Whether the root key was unavailable; a retry may succeed.
    pub const fn is_root_key_unavailable(&self) -> bool {
        matches!(self.flaw, DatabaseKeyFlaw::Wrap(WrapError::Unavailable(_)))
    }

    #[cfg(test)]
    pub(crate) const fn flaw(&self) -> &DatabaseKeyFlaw {
        &self.flaw
    }
}

/// What is wrong with a database key file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseKeyFlaw {
    /// There is no file. Without it the database cannot be read.
    #[error("not found; restore it from the backup that holds the database")]
    Missing,
    /// A new key was to be made where something already is.
    #[error("already exists and is never overwritten")]
    Exists,
    /// Not in this format, or of a version that this program does not support.
    #[error("is damaged or has an unknown version; restore it from a backup")]
    Malformed,
    /// Wrapped under other root keys.
    #[error("needs root key {}, but was given root key {given}. Use the root key of this vault", list(.wrapped_under))]
    OtherRoot {
        /// The root keys that open it.
        wrapped_under: Vec<KeyId>,
        /// The root key given.
        given: KeyId,
    },
    /// Holds two wraps already: a root rotation has not been finished.
    #[error("is already wrapped under two root keys; finish that rotation first")]
    Rotating,
    /// The root key does not open it.
    #[error("cannot be unwrapped: {0}")]
    Wrap(#[from] WrapError),
    /// The operating system refused.
    #[error("cannot be read or written: {0}")]
    Io(io::Error),
    /// The operating system returns no randomness.
    #[error(transparent)]
    NoEntropy(#[from] vault_core::port::NoEntropy),
}

fn list(keys: &[KeyId]) -> String {
    keys.iter().map(KeyId::to_string).collect::<Vec<_>>().join(" or ")
}

impl From<io::Error> for DatabaseKeyFlaw {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Io(error),
        }
    }
}
