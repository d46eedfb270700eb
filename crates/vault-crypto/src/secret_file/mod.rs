//! Files with a secret: how they are opened, and when they are trusted.

mod error;
mod locate;

pub use error::{SecretFileError, SecretFileErrorKind};

use rustix::fd::AsFd;
use rustix::fs::{FileType, fstat};
use rustix::process::{getegid, geteuid, getgroups};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// An opened file for a secret. The opened file itself is checked when it is read, whatever its path refers to by then.
#[derive(Debug)]
pub struct SecretFile {
    path: PathBuf,
    file: File,
}

impl SecretFile {
    /// Opens the file at `path` without reading it. A link is followed only from a directory to which only this
    /// process's user and root may write, as for mounted secrets and certificate tools. Never blocks on a pipe.
    ///
    /// # Errors
    /// The file does not exist, is not a regular file, or a link in its path cannot be trusted.
    pub fn open(path: &Path) -> Result<Self, SecretFileError> {
        match locate::open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file: file.into() }),
            Err(error_kind) => Err(SecretFileError::new(path, error_kind)),
        }
    }

    /// Returns the path with which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its content of at most `limit` bytes. The file must be a regular one that belongs to this process's user
    /// or to root, with at most mode 0600. A file of root may also be readable by a group of this process, unless the
    /// process runs as root.
    ///
    /// # Errors
    /// The file cannot be trusted, is longer than `limit`, or cannot be read. The error contains the path, never the
    /// content.
    pub fn read(&self, limit: usize) -> Result<Zeroizing<Vec<u8>>, SecretFileError> {
        verify(&self.file)
            .and_then(|()| read(&self.file, limit))
            .map_err(|error_kind| SecretFileError::new(&self.path, error_kind))
    }
}

fn read(file: &File, limit: usize) -> Result<Zeroizing<Vec<u8>>, SecretFileErrorKind> {
    // Allocate the final size: a buffer that grows would leave copies of secrets in memory. One additional byte detects
    // a longer file.
    let mut bytes = Zeroizing::new(vec![0; limit + 1]);
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(SecretFileErrorKind::Io(error)),
        }
    }
    if length > limit {
        let found = file.metadata().map_or(0, |found| found.len()).max(length as u64);
        return Err(SecretFileErrorKind::TooLong { found, limit });
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn verify(file: impl AsFd) -> Result<(), SecretFileErrorKind> {
    let found = fstat(file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(SecretFileErrorKind::NotAFile);
    }
    let we = geteuid().as_raw();
    if found.st_uid != we && found.st_uid != 0 {
        return Err(SecretFileErrorKind::Owner { owner: found.st_uid, user: we });
    }
    let mode = found.st_mode & 0o7777;
    // Root passes its file to a service's group, or only to the service with an access list, whose mask appears as the
    // group's mode.
    let handed_over = found.st_uid == 0 && we != 0 && (found.st_gid == 0 || is_our_group(found.st_gid));
    let refused = if handed_over { 0o037 } else { 0o077 };
    if mode & refused != 0 { Err(SecretFileErrorKind::Mode(mode)) } else { Ok(()) }
}

fn is_our_group(group: u32) -> bool {
    getegid().as_raw() == group || getgroups().is_ok_and(|groups| groups.iter().any(|ours| ours.as_raw() == group))
}

#[cfg(test)]
mod tests;
