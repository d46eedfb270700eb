//! Durable files: synced to disk before a call returns, and readable only by their owner.

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, fchmod, fsync, open, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Creates a file durably. After a crash, `path` either does not exist or has the whole content.
///
/// # Errors
/// - `AlreadyExists` if `path` exists.
/// - Any other error of the file system if the file cannot be written or synced.
pub(crate) fn create_new(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    put(path, content, |unfinished| match renameat_with(CWD, unfinished, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems cannot rename without replacing.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            std::fs::hard_link(unfinished, path)?;
            std::fs::remove_file(unfinished)
        }
        other => Ok(other?),
    })
}

/// Replaces the file at `path` durably. After a crash, `path` has either the whole old or the whole new content.
///
/// # Errors
/// The error of the file system if the file cannot be written or synced.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, |unfinished| std::fs::rename(unfinished, path))
}

fn put(path: &Path, content: &[u8], rename: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let unfinished = next_to(path);
    // A crash before the rename leaves this file behind. It is never read.
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match open_new(&unfinished).and_then(|file| write(file, content)).and_then(|()| rename(&unfinished)) {
        Ok(()) => sync_directory(path),
        Err(error) => {
            // Ignore a failed cleanup: the original error explains more.
            let _ = std::fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

fn next_to(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn open_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, OWNER_ONLY)?;
    fchmod(&file, OWNER_ONLY)?; // whatever the umask
    Ok(File::from(file))
}

fn write(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    fsync(&file)?;
    Ok(())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match fsync(&directory) {
        // Some file systems cannot sync a directory. They order renames automatically.
        Err(Errno::INVAL) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests;
