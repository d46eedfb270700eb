//! Why a root key file is refused, in one line that says how to mend it.

use crate::secret_file::SecretFileFlaw;
use std::io;
use std::path::{Path, PathBuf};

/// A root key file was refused.
#[derive(Debug, thiserror::Error)]
#[error("root key {path:?}: {flaw}")]
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

/// What is wrong with a root key file, and how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootKeyFlaw {
    /// There is no file.
    #[error("there is no such file; restore it from where you keep it, or run `init` for a new deployment")]
    Missing,
    /// A new key was to be made where something already is.
    #[error("already exists and is never overwritten; move it away first if you are sure")]
    Exists,
    /// Not a regular file.
    #[error("is not a regular file; name the key file itself")]
    NotAFile,
    /// A link in a directory that others may write, or too many links.
    #[error(
        "is reached by a link in a directory that others may write; name the file itself or run `chmod go-w` on the directory"
    )]
    UntrustedLink,
    /// Owned by somebody else.
    #[error("is owned by user {0}; make this process's user or root its owner (`chown`)")]
    Owner(u32),
    /// Others may read or write it.
    #[error("has mode {0:04o} and is open to others; run `chmod 600` on it")]
    Mode(u32),
    /// Not 32 bytes long. Longer files are not read to their end.
    #[error(
        "is not exactly 32 bytes long; make it with `init` or `head -c 32 /dev/urandom`, without text encoding or newline"
    )]
    Length,
    /// All zero, a text, an example, or otherwise not random.
    #[error("is not random ({0}); make it with `init` or `head -c 32 /dev/urandom`")]
    Weak(&'static str),
    /// The operating system refused.
    #[error("cannot be read or written: {0}")]
    Io(#[source] io::Error),
    /// The operating system gives no randomness.
    #[error(transparent)]
    NoEntropy(#[from] vault_core::port::NoEntropy),
}

impl From<SecretFileFlaw> for RootKeyFlaw {
    fn from(flaw: SecretFileFlaw) -> Self {
        match flaw {
            SecretFileFlaw::NotAFile => Self::NotAFile,
            SecretFileFlaw::Owner(owner) => Self::Owner(owner),
            SecretFileFlaw::Mode(mode) => Self::Mode(mode),
            SecretFileFlaw::Io(error) => error.into(),
        }
    }
}

impl From<io::Error> for RootKeyFlaw {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Io(error),
        }
    }
}

impl From<rustix::io::Errno> for RootKeyFlaw {
    fn from(errno: rustix::io::Errno) -> Self {
        io::Error::from(errno).into()
    }
}
