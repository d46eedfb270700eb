//! Errors of files whose permissions or location are not safe for a secret.

use std::io;
use std::path::{Path, PathBuf};

/// Error when a file is not safe for a secret.
#[derive(Debug, thiserror::Error)]
#[error("{} {error_kind}", .path.display())]
pub struct SecretFileError {
    path: PathBuf,
    error_kind: SecretFileErrorKind,
}

impl SecretFileError {
    pub(super) fn new(path: &Path, error_kind: SecretFileErrorKind) -> Self {
        Self { path: path.to_owned(), error_kind }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the reason.
    pub const fn error_kind(&self) -> &SecretFileErrorKind {
        &self.error_kind
    }

    pub(crate) fn into_parts(self) -> (PathBuf, SecretFileErrorKind) {
        (self.path, self.error_kind)
    }
}

/// Reason why a file is not safe for a secret. The text continues after the file's path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileErrorKind {
    /// The file does not exist.
    #[error("not found")]
    Missing,
    /// The path does not name a regular file.
    #[error("is not a regular file; expected the file itself, not a directory, pipe or device")]
    NotAFile,
    /// The path contains a link in a directory that other users may write, or too many links.
    #[error("is reached through a symbolic link in a directory that other users can write to; name the file itself")]
    UntrustedLink,
    /// The file belongs to another user.
    #[error("belongs to user {owner}, but this process runs as user {user}; expected a file of user {user} or of root")]
    Owner {
        /// User id of the file's owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// Other users may read or write the file.
    // The text does not suggest `chmod 600`: on a file that root owns and the service's group reads, that would lock
    // the service out.
    #[error("has mode {:04o}, so other users can read or write it; expected {}", .0, expected_modes())]
    Mode(u32),
    /// The file is longer than the expected content.
    #[error("has {found} bytes; expected at most {limit}")]
    TooLong {
        /// Length of the file in bytes.
        found: u64,
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The operating system reported an error.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
}

/// Returns the modes that this user accepts. Root itself reads no file that is passed to a group.
fn expected_modes() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "0600 or 0400",
        false => "0600 or 0400, or 0440 if it belongs to root and the service's group",
    }
}

impl From<rustix::io::Errno> for SecretFileErrorKind {
    fn from(errno: rustix::io::Errno) -> Self {
        match errno {
            rustix::io::Errno::NOENT => Self::Missing,
            errno => Self::Io(errno.into()),
        }
    }
}
