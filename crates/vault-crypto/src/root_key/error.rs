//! Errors of root key files. No message suggests creating a new key: a new key never opens an existing vault.

use crate::secret_file::{SecretFileError, SecretFileErrorKind};
use std::io;
use std::path::{Path, PathBuf};

/// Error when a root key file is rejected.
#[derive(Debug, thiserror::Error)]
#[error("root key {} {error_kind}", .path.display())]
pub struct RootKeyError {
    path: PathBuf,
    pub(super) error_kind: RootKeyErrorKind,
}

impl RootKeyError {
    pub(super) fn new(path: &Path, error_kind: RootKeyErrorKind) -> Self {
        Self { path: path.to_owned(), error_kind }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the reason.
    pub const fn error_kind(&self) -> &RootKeyErrorKind {
        &self.error_kind
    }
}

/// Reason why a root key file is rejected, and what to do. The text continues after the file's path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootKeyErrorKind {
    /// The file does not exist, or its permissions are not safe for a secret.
    #[error(transparent)]
    File(SecretFileErrorKind),
    /// A new key was requested, but the file already exists.
    #[error("already exists; it is never overwritten")]
    Exists,
    /// The file is not 32 bytes long. Contains the actual length.
    #[error(
        "has {0} bytes; expected 32. {hint}Do not replace it: a new key cannot decrypt a vault that was created with this one",
        hint = encoding(*.0)
    )]
    Length(u64),
    /// The output of a command is not an encoded key. Contains its length.
    #[error(
        "has {0} bytes; expected 32 bytes, 64 hexadecimal digits or 44 characters of base64, and at most one line feed"
    )]
    Encoding(usize),
    /// The content is all zero, text, an example, or otherwise not random.
    #[error("does not contain a random key ({0}); expected 32 random bytes. Restore the key from your copy")]
    Weak(&'static str),
    /// The file cannot be written.
    #[error("cannot be written: {0}")]
    Io(#[source] io::Error),
    /// The operating system returns no randomness.
    #[error(transparent)]
    NoEntropy(#[from] vault_core::port::NoEntropy),
}

/// Returns a hint how to decode the text that the key was probably encoded as, with or without a line end.
const fn encoding(length: u64) -> &'static str {
    match length {
        44..=46 => "If it is base64, decode it with `base64 -d`. ",
        64..=66 => "If it is hexadecimal, decode it with `xxd -r -p`. ",
        _ => "Restore it from your copy. ",
    }
}

impl From<SecretFileError> for RootKeyError {
    fn from(error: SecretFileError) -> Self {
        let (path, error_kind) = error.into_parts();
        let error_kind = match error_kind {
            SecretFileErrorKind::TooLong { found, .. } => RootKeyErrorKind::Length(found),
            error_kind => RootKeyErrorKind::File(error_kind),
        };
        Self { path, error_kind }
    }
}

impl From<io::Error> for RootKeyErrorKind {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Io(error),
        }
    }
}
