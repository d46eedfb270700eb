//! Finds the file that a path names, following links only from directories that no other user may write.
//!
//! Each step starts from an open directory and never follows a link implicitly, so nothing can be replaced between the
//! check and the use.

use super::SecretFileErrorKind;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::fs::{fstat, fstatvfs, openat, readlinkat, statat};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

/// Same limit as in Linux (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Flags to open a directory for the next step; on Linux without permission to list it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Flags to open the file without blocking on a pipe and without acquiring a controlling terminal.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens the file that `path` names for reading.
pub(super) fn open(path: &Path) -> Result<OwnedFd, SecretFileErrorKind> {
    let mut directory = openat(CWD, if path.is_absolute() { "/" } else { "." }, DIRECTORY, Mode::empty())?;
    let mut steps = VecDeque::new();
    prepend(&mut steps, path);
    let mut links = 0;
    while let Some(step) = steps.pop_front() {
        if step == "/" {
            directory = openat(CWD, "/", DIRECTORY, Mode::empty())?;
            continue;
        }
        let kind = FileType::from_raw_mode(statat(&directory, &step, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
        match kind {
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS || !only_we_may_write(&directory)? {
                    return Err(SecretFileErrorKind::UntrustedLink);
                }
                let target = readlinkat(&directory, &step, Vec::new())?;
                prepend(&mut steps, Path::new(&OsString::from_vec(target.into_bytes())));
            }
            FileType::Directory if !steps.is_empty() => {
                directory = openat(&directory, &step, DIRECTORY, Mode::empty())?;
            }
            FileType::RegularFile if steps.is_empty() => {
                return Ok(openat(&directory, &step, FILE, Mode::empty())?);
            }
            _ => return Err(SecretFileErrorKind::NotAFile),
        }
    }
    Err(SecretFileErrorKind::NotAFile)
}

fn prepend(steps: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::CurDir | Component::Prefix(_) => {}
            Component::RootDir => steps.push_front(OsStr::new("/").to_owned()),
            Component::ParentDir => steps.push_front(OsStr::new("..").to_owned()),
            Component::Normal(name) => steps.push_front(name.to_owned()),
        }
    }
}

/// Returns whether only the current user and root can change the content of `directory`.
fn only_we_may_write(directory: &impl AsFd) -> Result<bool, SecretFileErrorKind> {
    // Mounted secrets may be in a directory of mode 1777 that is mounted read-only.
    if fstatvfs(directory)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(true);
    }
    let found = fstat(directory)?;
    let owned = found.st_uid == 0 || found.st_uid == rustix::process::geteuid().as_raw();
    Ok(owned && found.st_mode & 0o022 == 0)
}
