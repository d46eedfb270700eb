//! Why a file is not trusted with a secret.

use std::io;
use std::path::{Path, PathBuf};

/// A file is not trusted with a secret.
#[derive(Debug, thiserror::Error)]
#[error("{} {flaw}", .path.display())]
pub struct SecretFileError {
    path: PathBuf,
    flaw: SecretFileFlaw,
}

impl SecretFileError {
    pub(super) fn new(path: &Path, flaw: SecretFileFlaw) -> Self {
        Self { path: path.to_owned(), flaw }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    pub const fn flaw(&self) -> &SecretFileFlaw {
        &self.flaw
    }

    pub(crate) fn into_parts(self) -> (PathBuf, SecretFileFlaw) {
        (self.path, self.flaw)
    }
}

/// What is wrong with a file that is to hold a secret. Reads on from the file's path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileFlaw {
    /// There is no file.
    #[error("not found")]
    Missing,
    /// Not a regular file.
    #[error("is not a regular file; expected the file itself, not a directory, pipe or device")]
    NotAFile,
    /// A link in a directory that others may write to, or too many links.
    #[error("is reached through a symbolic link in a directory that other users can write to; name the file itself")]
    UntrustedLink,
    /// The file belongs to somebody else.
    #[error("belongs to user {owner}, but this process runs as user {user}; expected a file of user {user} or of root")]
    Owner {
        /// The file's user id.
        owner: u32,
        /// This process's user id.
        user: u32,
    },
    /// Others may read or write the file.
    // No `chmod 600`: done to a file that root hands to a service's group, it would lock the service out.
    #[error(
        "has mode {0:04o}, so other users can read or write it; expected 0600 or 0400, or 0440 if it belongs to root \
         and the service's group"
    )]
    Mode(u32),
    /// The file is longer than what it is to hold.
    #[error("has {found} bytes; expected at most {limit}")]
    TooLong {
        /// Its length.
        found: u64,
        /// The most bytes.
        limit: usize,
    },
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
}

impl From<rustix::io::Errno> for SecretFileFlaw {
    fn from(errno: rustix::io::Errno) -> Self {
        match errno {
            rustix::io::Errno::NOENT => Self::Missing,
            errno => Self::Io(errno.into()),
        }
    }
}
