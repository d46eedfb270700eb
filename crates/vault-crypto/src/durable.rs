//! Files that are on disk when a call returns, readable by their owner alone.

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, fchmod, fsync, open, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Writes a new file: a crash leaves nothing at `path` or the whole content.
///
/// # Errors
/// There already is something at `path` (`AlreadyExists`), or it cannot be written; then nothing is left of it.
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

/// Puts a new content in the place of `path`: a crash leaves the old content or the new one, whole.
///
/// # Errors
/// It cannot be written; then the old content stands.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, |unfinished| std::fs::rename(unfinished, path))
}

fn put(path: &Path, content: &[u8], rename: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let unfinished = beside(path);
    // Left by a crash before its rename, and never read.
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match open_new(&unfinished).and_then(|file| write(file, content)).and_then(|()| rename(&unfinished)) {
        Ok(()) => sync_directory(path),
        Err(error) => {
            // The error that is returned says more than a failure to tidy up would.
            let _ = std::fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

fn beside(path: &Path) -> PathBuf {
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
        // Some file systems cannot sync a directory; they order renames by themselves.
        Err(Errno::INVAL) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests;
