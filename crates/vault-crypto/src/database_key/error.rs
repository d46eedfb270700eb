//! Errors of database key files, each with a one-line message.

use crate::aead::SealingError;
use crate::blob::OpenError;
use std::io;
use std::path::{Path, PathBuf};
use vault_core::id::KeyId;

/// Error when a database key file cannot be read, written or opened.
#[derive(Debug, thiserror::Error)]
#[error("database key {} {error_kind}", .path.display())]
pub struct DatabaseKeyError {
    path: PathBuf,
    error_kind: DatabaseKeyErrorKind,
}

impl DatabaseKeyError {
    pub(super) fn new(path: &Path, error_kind: DatabaseKeyErrorKind) -> Self {
        Self { path: path.to_owned(), error_kind }
    }

    /// Returns whether the file is wrapped under a root key other than the given one.
    pub const fn is_wrong_root_key(&self) -> bool {
        matches!(self.error_kind, DatabaseKeyErrorKind::OtherRoot { .. })
    }

    #[cfg(test)]
    pub(crate) const fn error_kind(&self) -> &DatabaseKeyErrorKind {
        &self.error_kind
    }
}

/// Reason why a database key file is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseKeyErrorKind {
    /// The file does not exist. Without it the database cannot be read.
    #[error("not found; restore it from the backup that contains the database")]
    Missing,
    /// A new key was requested, but the path already exists.
    #[error("already exists and is never overwritten")]
    Exists,
    /// The file is not in this format, or its version is not supported.
    #[error("is damaged or has an unknown version; restore it from a backup")]
    Malformed,
    /// The file is wrapped under other root keys.
    #[error("needs root key {}, but got root key {given}. Use the root key of this vault", list(.wrapped_under))]
    OtherRoot {
        /// Root keys that open the file.
        wrapped_under: Vec<KeyId>,
        /// Root key that was given.
        given: KeyId,
    },
    /// The file already contains two wraps: a root key rotation has not been finished.
    #[error("is already wrapped under two root keys; finish that rotation first")]
    Rotating,
    /// The root key does not open the file.
    #[error("cannot be unwrapped: {0}")]
    Unwrap(#[from] OpenError),
    /// A new key could not be wrapped.
    #[error("cannot be wrapped: {0}")]
    Wrap(#[from] SealingError),
    /// The operating system reported an error.
    #[error("cannot be read or written: {0}")]
    Io(io::Error),
    /// The operating system returns no randomness.
    #[error(transparent)]
    NoEntropy(#[from] vault_core::port::NoEntropy),
}

fn list(keys: &[KeyId]) -> String {
    keys.iter().map(KeyId::to_string).collect::<Vec<_>>().join(" or ")
}

impl From<io::Error> for DatabaseKeyErrorKind {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Io(error),
        }
    }
}
