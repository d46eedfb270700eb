//! The lock that admits one server per database file. It is released when its process exits, and the file names the
//! owner.

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// Maximum length of a lock file, in bytes.
const LONGEST: u64 = 200;

/// Exclusive lock of the process that serves, migrates or restores a database file. Dropping it releases the lock.
#[derive(Debug)]
pub struct ServerLock {
    // Closing the file releases the lock.
    _file: File,
}

/// Error of acquiring the lock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process has the lock.
    #[error("database {database} is in use by {holder}. Stop that process first")]
    Held {
        /// Path of the database.
        database: PathBuf,
        /// Command and process ID of the owner, from the lock file.
        holder: String,
    },
    /// The file at the lock file's path was not created by OrgVault. It was not changed.
    #[error("lock file {path} {error_kind}. It was not changed. Move it away if nothing else needs it")]
    Foreign {
        /// Path of the lock file.
        path: PathBuf,
        /// Why the file is rejected.
        error_kind: LockFileErrorKind,
    },
    /// The lock file cannot be created or written.
    #[error("cannot use lock file {path}")]
    Io {
        /// Path of the lock file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Why a file is not a lock file of this process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockFileErrorKind {
    /// A symbolic link. It is not followed.
    Link,
    /// Not a regular file.
    NotAFile,
    /// The file has more than one hard link.
    HardLinked,
    /// The file belongs to the user with this ID.
    Owner(u32),
    /// The content is not that of a lock file.
    Content,
}

impl fmt::Display for LockFileErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("is a symbolic link"),
            Self::NotAFile => f.write_str("is not a regular file"),
            Self::HardLinked => f.write_str("has more than one hard link"),
            Self::Owner(owner) => write!(f, "belongs to user {owner}, not to user {}", geteuid().as_raw()),
            Self::Content => f.write_str("has content that OrgVault did not write"),
        }
    }
}

impl ServerLock {
    /// Acquires the lock of `database` for `command`.
    ///
    /// The path of the lock file is that of the database followed by `.lock`. Symbolic links are not followed, and only
    /// a file that belongs to the user of this process is written.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process has the lock, [`LockError::Foreign`] if the file is not a lock file of
    /// this user, or [`LockError::Io`].
    pub fn take(database: &Path, command: &str) -> Result<Self, LockError> {
        let mut path = database.to_owned().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        match take(&path, command) {
            Ok(lock) => Ok(lock),
            Err(LockFailure::Held(holder)) => Err(LockError::Held { database: database.to_owned(), holder }),
            Err(LockFailure::Foreign(error_kind)) => Err(LockError::Foreign { path, error_kind }),
            Err(LockFailure::Io(source)) => Err(LockError::Io { path, source }),
        }
    }
}

enum LockFailure {
    Held(String),
    Foreign(LockFileErrorKind),
    Io(io::Error),
}

impl From<io::Error> for LockFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for LockFailure {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

fn take(path: &Path, command: &str) -> Result<ServerLock, LockFailure> {
    let mut file = create_or_open(path)?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let holder = read(&mut file)?;
    match locked {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) if holder.is_empty() => {
            return Err(LockFailure::Held("a process that is starting".into()));
        }
        Err(Errno::WOULDBLOCK) => return Err(LockFailure::Held(holder)),
        Err(error) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.rewind()?;
    // One write: a process that is killed between two would leave a file that the next one rejects.
    file.write_all(format!("{command} (process {})\n", std::process::id()).as_bytes())?;
    Ok(ServerLock { _file: file })
}

fn create_or_open(path: &Path) -> Result<File, LockFailure> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    loop {
        match open(path, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR) {
            Ok(made) => return Ok(made.into()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        match open(path, flags, Mode::empty()) {
            Ok(found) => {
                validate(&found)?;
                return Ok(found.into());
            }
            Err(Errno::NOENT) => {} // removed since the first attempt
            Err(Errno::LOOP) => return Err(LockFailure::Foreign(LockFileErrorKind::Link)),
            Err(Errno::ISDIR | Errno::NXIO) => return Err(LockFailure::Foreign(LockFileErrorKind::NotAFile)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Checks the opened file rather than the path, which may refer to another file by now.
fn validate(file: &impl rustix::fd::AsFd) -> Result<(), LockFailure> {
    let found = fstat(file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(LockFailure::Foreign(LockFileErrorKind::NotAFile));
    }
    if found.st_uid != geteuid().as_raw() {
        return Err(LockFailure::Foreign(LockFileErrorKind::Owner(found.st_uid)));
    }
    if found.st_nlink > 1 {
        return Err(LockFailure::Foreign(LockFileErrorKind::HardLinked));
    }
    Ok(())
}

/// Returns the owner that the file names. Empty until the first owner has written it. The file is not synced, so it may
/// contain zeros after a power cut.
fn read(file: &mut File) -> Result<String, LockFailure> {
    let mut content = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut content)?;
    let foreign = || LockFailure::Foreign(LockFileErrorKind::Content);
    if content.len() as u64 > LONGEST {
        return Err(foreign());
    }
    let content = String::from_utf8(content).map_err(|_| foreign())?;
    let written = content.trim_end_matches('\0');
    let holder = written.strip_suffix('\n').unwrap_or(written);
    let ours = holder.is_empty()
        || holder.split_once(" (process ").is_some_and(|(command, process)| {
            let id = process.strip_suffix(')').unwrap_or_default();
            !command.is_empty() && !command.contains(char::is_control) && id.parse::<u32>().is_ok()
        });
    if ours { Ok(holder.to_owned()) } else { Err(foreign()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
    use tempfile::TempDir;

    fn place() -> (TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let (database, lock) = (directory.path().join("vault.db"), directory.path().join("vault.db.lock"));
        (directory, database, lock)
    }

    #[track_caller]
    fn foreign(database: &Path) -> LockFileErrorKind {
        match ServerLock::take(database, "serve") {
            Err(LockError::Foreign { error_kind, .. }) => error_kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lock_has_one_owner_and_names_it() {
        let (_directory, database, lock) = place();
        let held = ServerLock::take(&database, "serve").unwrap();
        assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o7777, 0o600);
        let refused = ServerLock::take(&database, "migrate").unwrap_err().to_string();
        let holder = format!("serve (process {})", std::process::id());
        assert!(refused.contains(&holder) && refused.contains(database.to_str().unwrap()), "{refused}");
        drop(held);
        ServerLock::take(&database, "migrate").unwrap();
        assert!(fs::read_to_string(&lock).unwrap().starts_with("migrate (process "));
    }

    #[test]
    fn lock_file_of_zeros_is_overwritten() {
        let (_directory, database, lock) = place();
        let zeros = "\0".repeat(21);
        let left = ["", &zeros, "serve (process 12)\n\0\0\0"];
        for content in left {
            fs::write(&lock, content).unwrap();
            drop(ServerLock::take(&database, "serve").unwrap_or_else(|error| panic!("{content:?}: {error}")));
            assert_eq!(fs::read_to_string(&lock).unwrap(), format!("serve (process {})\n", std::process::id()));
        }
    }

    #[test]
    fn foreign_files_are_not_written() {
        let (directory, database, lock) = place();
        let precious = directory.path().join("precious");
        fs::write(&precious, "precious\n").unwrap();
        let whole = || assert_eq!(fs::read_to_string(&precious).unwrap(), "precious\n");

        symlink(&precious, &lock).unwrap();
        assert_eq!(foreign(&database), LockFileErrorKind::Link);
        whole();
        fs::remove_file(&lock).unwrap();
        symlink(directory.path().join("nowhere"), &lock).unwrap();
        assert_eq!(foreign(&database), LockFileErrorKind::Link);
        assert!(!directory.path().join("nowhere").exists(), "nothing is made through a link");
        fs::remove_file(&lock).unwrap();

        fs::hard_link(&precious, &lock).unwrap();
        assert_eq!(foreign(&database), LockFileErrorKind::HardLinked);
        whole();
        fs::remove_file(&lock).unwrap();

        for content in [
            "precious\n",
            "\nprecious",
            "\0precious",
            "serve (process x)\n",
            "serve (process 12",
            "serve (process 12)\n3)\n",
            "(process 1)\n",
            &"long ".repeat(100),
            &"\0".repeat(300),
        ] {
            fs::write(&lock, content).unwrap();
            assert_eq!(foreign(&database), LockFileErrorKind::Content, "{content}");
            assert_eq!(fs::read_to_string(&lock).unwrap(), content);
        }
        fs::remove_file(&lock).unwrap();

        fs::create_dir(&lock).unwrap();
        assert_eq!(foreign(&database), LockFileErrorKind::NotAFile);
        fs::remove_dir(&lock).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &lock, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(foreign(&database), LockFileErrorKind::NotAFile);
    }

    #[test]
    fn foreign_file_is_unchanged_and_ownership_is_kept() {
        if !geteuid().is_root() {
            return; // only root can create a file of another user
        }
        let (directory, database, lock) = place();
        fs::write(&lock, "").unwrap();
        chown(&lock, Some(12_345), None).unwrap();
        assert_eq!(foreign(&database), LockFileErrorKind::Owner(12_345));
        fs::remove_file(&lock).unwrap();

        chown(directory.path(), Some(12_345), Some(12_345)).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        drop(ServerLock::take(&database, "serve").unwrap());
        assert_eq!(fs::metadata(&lock).unwrap().uid(), 0, "it belongs to its creator");
    }
}
