//! Whether an open file may hold a secret.

use rustix::fd::AsFd;
use rustix::fs::{FileType, fstat};
use rustix::process::{getegid, geteuid, getgroups};
use std::io;

/// Why a file is not trusted with a secret, and how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileFlaw {
    /// Not a regular file.
    #[error("is not a regular file")]
    NotAFile,
    /// Owned by somebody else.
    #[error("is owned by user {0}; make this process's user or root its owner (`chown`)")]
    Owner(u32),
    /// Others may read or write it.
    #[error("has mode {0:04o} and is open to others; run `chmod 600` on it")]
    Mode(u32),
    /// The operating system tells nothing of it.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
}

/// Judges a file by what was opened, not by what its path said before: a regular file of this process's user or of
/// root, closed to everybody else. One of root's may also be readable by this process's group.
///
/// # Errors
/// What is wrong with it.
pub fn check_secret_file(file: impl AsFd) -> Result<(), SecretFileFlaw> {
    let found = fstat(file).map_err(|errno| SecretFileFlaw::Io(errno.into()))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(SecretFileFlaw::NotAFile);
    }
    let we = geteuid().as_raw();
    if found.st_uid != we && found.st_uid != 0 {
        return Err(SecretFileFlaw::Owner(found.st_uid));
    }
    let mode = found.st_mode & 0o7777;
    // Root hands its file to our group (or to us alone, by an access list, whose mask shows as the group's).
    let handed_to_us = found.st_uid != we && (found.st_gid == 0 || is_our_group(found.st_gid));
    let refused = if handed_to_us { 0o037 } else { 0o077 };
    if mode & refused != 0 { Err(SecretFileFlaw::Mode(mode)) } else { Ok(()) }
}

fn is_our_group(group: u32) -> bool {
    getegid().as_raw() == group || getgroups().is_ok_and(|groups| groups.iter().any(|ours| ours.as_raw() == group))
}
