//! Why a root key file is refused. No text advises a new key: one never opens an existing vault.

use crate::secret_file::{SecretFileError, SecretFileFlaw};
use std::io;
use std::path::{Path, PathBuf};

/// A root key file was refused.
#[derive(Debug, thiserror::Error)]
#[error("root key {} {flaw}", .path.display())]
pub struct RootKeyError {
    path: PathBuf,
    pub(super) flaw: RootKeyFlaw,
}

impl RootKeyError {
    pub(super) fn new(path: &Path, flaw: RootKeyFlaw) -> Self {
        Self { path: path.to_owned(), flaw }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    pub const fn flaw(&self) -> &RootKeyFlaw {
        &self.flaw
    }
}

/// What is wrong with a root key file, and what to do. Reads on from the file's path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootKeyFlaw {
    /// There is no file, or it is not to be trusted with a secret.
    #[error(transparent)]
    File(SecretFileFlaw),
    /// A new key was to be made where there already is a file.
    #[error("already exists; it is never overwritten")]
    Exists,
    /// Not 32 bytes long, but so many.
    #[error(
        "has {0} bytes; expected 32. {hint}Do not replace it: a new key cannot open a vault made with this one",
        hint = encoding(*.0)
    )]
    Length(u64),
    /// All zero, a text, an example, or otherwise not random.
    #[error("does not hold a random key ({0}); expected 32 random bytes. Restore the key from your copy")]
    Weak(&'static str),
    /// It could not be written.
    #[error("cannot be written: {0}")]
    Io(#[source] io::Error),
    /// The operating system returns no randomness.
    #[error(transparent)]
    NoEntropy(#[from] vault_core::port::NoEntropy),
}

/// How to get the key out of the text that it probably was made into, with or without a line end.
const fn encoding(length: u64) -> &'static str {
    match length {
        44..=46 => "If it is base64, decode it with `base64 -d`. ",
        64..=66 => "If it is hexadecimal, decode it with `xxd -r -p`. ",
        _ => "Restore it from your copy. ",
    }
}

impl From<SecretFileError> for RootKeyError {
    fn from(error: SecretFileError) -> Self {
        let (path, flaw) = error.into_parts();
        let flaw = match flaw {
            SecretFileFlaw::TooLong { found, .. } => RootKeyFlaw::Length(found),
            flaw => RootKeyFlaw::File(flaw),
        };
        Self { path, flaw }
    }
}

impl From<io::Error> for RootKeyFlaw {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Io(error),
        }
    }
}
