//! One server per database file: a lock that dies with its process and says who holds it.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// Held by the one process that serves, migrates or restores a database file. Dropped, it is free again.
#[derive(Debug)]
pub struct ServerLock {
    // Closing the file gives the lock back.
    _file: File,
}

/// The lock cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds it.
    #[error("another process holds the database: {holder}")]
    Held {
        /// Its command and process id, as it wrote them.
        holder: String,
    },
    /// The lock file cannot be made or written.
    #[error("the lock file {path} cannot be used")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ServerLock {
    /// Takes the lock of `database` for `command`, or says who has it.
    ///
    /// # Errors
    /// It is taken, or its file (the database's name with `.lock` after it) cannot be used.
    pub fn take(database: &Path, command: &str) -> Result<Self, LockError> {
        let mut path = database.to_owned().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        take(&path, command).map_err(|source| LockError::Io { path, source })?
    }
}

fn take(path: &Path, command: &str) -> io::Result<Result<ServerLock, LockError>> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    // Root may take the lock before the service's own user ever does, who must then be able to open it.
    if let Some(Ok(directory)) = path.parent().map(Path::metadata) {
        let _ = fchown(&file, Some(directory.uid()), Some(directory.gid()));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Err(LockError::Held { holder: read_holder(&mut file)? })),
        Err(error) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{command} (process {})", std::process::id())?;
    file.flush()?;
    Ok(Ok(ServerLock { _file: file }))
}

fn read_holder(file: &mut File) -> io::Result<String> {
    let mut holder = String::new();
    file.take(200).read_to_string(&mut holder)?;
    let holder = holder.trim();
    Ok(if holder.is_empty() { "it has not said which yet".to_owned() } else { holder.to_owned() })
}
