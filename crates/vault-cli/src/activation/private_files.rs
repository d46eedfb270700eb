//! Private files for a command: readable only by its user, in memory if possible, and removed after the command's exit.
//!
//! A killed run cannot remove its directory, so a later run does, after the command has exited too. Two signs show
//! whether it is in use. The run locks the directory, and the command inherits the lock. The directory also contains a
//! record of the command, because many commands close inherited descriptors. Between the start of a command and its
//! record, only the lock protects the directory.

use super::life::Life;
use crate::failure::Failure;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat, statfs};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, geteuid};
use std::env;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use uuid::Uuid;

const PREFIX: &str = "orgvault-exec-";
/// Name of the file with the command's record. Names of other files start with a number.
const COMMAND: &str = "command";
/// File system type of tmpfs in `statfs`.
const TMPFS: u64 = 0x0102_1994;

/// Returns the parent directories in order of preference: the user's runtime directory, a file system in memory, and
/// the directory for temporary files.
pub(crate) fn places() -> Vec<PathBuf> {
    let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute() && is_ours(path));
    let memory = Path::new("/dev/shm");
    let in_memory = statfs(memory).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS));
    session.into_iter().chain(in_memory.then(|| memory.to_owned())).chain([env::temp_dir()]).collect()
}

fn is_ours(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0)
}

/// A private directory. It is removed with its content on drop.
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    lock: OwnedFd,
}

impl PrivateDirectory {
    /// Creates a directory in the first of `places` where this is possible.
    pub(crate) fn create(places: &[PathBuf], mut name: impl FnMut() -> Uuid) -> Result<Self, Failure> {
        let mut violation = Failure::new("no directory for temporary files");
        for place in places {
            match Self::create_in(place, &mut name) {
                Ok(directory) => return Ok(directory),
                Err(error) => {
                    violation = Failure::new(format!("cannot create a temporary file in {}: {error}", place.display()))
                }
            }
        }
        Err(violation)
    }

    fn create_in(place: &Path, name: &mut impl FnMut() -> Uuid) -> io::Result<Self> {
        loop {
            let path = place.join(format!("{PREFIX}{}", name().simple()));
            DirBuilder::new().mode(0o700).create(&path)?;
            // Before the lock, another run may have removed the directory as abandoned.
            if let Some(lock) = lock(&path, FlockOperation::LockExclusive)? {
                return Ok(Self { path, lock });
            }
        }
    }

    /// Writes a file and returns its path. Replaces an existing file atomically.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        let new = self.path.join(format!("{name}.new"));
        let failed = |error: io::Error| Failure::new(format!("cannot create a temporary file: {error}"));
        let write = || {
            let _ = std::fs::remove_file(&new); // of a failed write
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(content)?;
            std::fs::rename(&new, &path)
        };
        write().map_err(failed)?;
        Ok(path)
    }

    /// Lets commands that are started afterwards inherit the lock.
    pub(crate) fn share_lock(&self) -> Result<(), Failure> {
        Ok(fcntl_setfd(&self.lock, FdFlags::empty())?)
    }

    /// Records the command that uses the files.
    pub(crate) fn record(&self, command: Pid) {
        // Without the record, the lock alone protects the directory.
        if let Some(life) = Life::of(command) {
            let _ = self.write(COMMAND, life.to_text().as_bytes());
        }
    }

    /// Removes the directory.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let (path, removed) = (self.path.clone(), std::fs::remove_dir_all(&self.path));
        removed.map_err(|error| {
            Failure::new(format!("cannot remove {}, which contains a secret: {error}", path.display()))
        })
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path); // it may already be removed
    }
}

/// Removes the directories of this user's killed runs.
pub(crate) fn remove_abandoned(places: &[PathBuf]) {
    let entries = places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())) {
        let path = entry.path();
        // The directory belongs to another user or is in use.
        let Ok(Some(_lock)) = lock(&path, FlockOperation::NonBlockingLockExclusive) else { continue };
        if is_unused(&path) {
            let _ = std::fs::remove_dir_all(&path); // the next run tries again
        }
    }
}

/// Returns whether the recorded command has exited, or none was started.
fn is_unused(directory: &Path) -> bool {
    let record = std::fs::read_to_string(directory.join(COMMAND)).unwrap_or_default();
    Life::parse(&record).is_none_or(|command| command.has_ended())
}

/// Locks a directory of this user. Returns `None` if the path no longer refers to the locked directory.
fn lock(path: &Path, operation: FlockOperation) -> io::Result<Option<OwnedFd>> {
    let gone = |error: rustix::io::Errno| if error == rustix::io::Errno::NOENT { Ok(None) } else { Err(error.into()) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match open(path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(error) => return gone(error),
    };
    let found = fstat(&directory)?;
    if found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    flock(&directory, operation)?;
    match stat(path) {
        Ok(now) if (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino) => Ok(Some(directory)),
        Ok(_) => Ok(None),
        Err(error) => gone(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::os::unix::fs::PermissionsExt as _;

    fn names() -> impl FnMut() -> Uuid {
        let mut next = 0;
        move || {
            next += 1;
            Uuid::from_u128(next)
        }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("it is there").permissions().mode() & 0o7777
    }

    fn entries(place: &Path) -> usize {
        std::fs::read_dir(place).expect("a directory").count()
    }

    #[test]
    fn files_are_private_and_deleted_at_exit() {
        let place = tempfile::tempdir().expect("a directory");
        let places = [place.path().join("not-there"), place.path().to_owned()];
        let directory = PrivateDirectory::create(&places, names()).expect("a directory");
        let file = directory.write("key.json", b"secret").expect("a file");
        assert_eq!((mode(&directory.path), mode(&file)), (0o700, 0o600));
        assert_eq!(std::fs::read(&file).expect("a file"), b"secret");
        let mut reader = File::open(&file).expect("a file");
        directory.write("key.json", b"other").expect("a file");
        let mut read = String::new();
        std::io::Read::read_to_string(&mut reader, &mut read).expect("a file");
        assert_eq!((&*read, &*std::fs::read(&file).expect("a file"), mode(&file)), ("secret", &b"other"[..], 0o600));
        assert_eq!(entries(&directory.path), 1);
        directory.remove().expect("removed");
        assert_eq!(entries(place.path()), 0);
        let dropped = PrivateDirectory::create(&places, names()).expect("a directory");
        dropped.write("key.json", b"secret").expect("a file");
        drop(dropped);
        assert_eq!(entries(place.path()), 0);
        assert!(PrivateDirectory::create(&places[..1], names()).is_err());
    }

    #[test]
    fn only_unlocked_directories_are_deleted() {
        let place = tempfile::tempdir().expect("a directory");
        let places = [place.path().to_owned()];
        let held = PrivateDirectory::create(&places, names()).expect("a directory");
        // An abandoned directory, one that others can read, and one with another name.
        let path = |name: &str| place.path().join(name);
        for name in ["orgvault-exec-left", "orgvault-exec-open", "other"] {
            DirBuilder::new().mode(0o700).create(path(name)).expect("a directory");
            std::fs::write(path(name).join("key.json"), b"secret").expect("a file");
        }
        std::fs::set_permissions(path("orgvault-exec-open"), std::fs::Permissions::from_mode(0o755)).expect("a mode");
        std::os::unix::fs::symlink(path("other"), path("orgvault-exec-link")).expect("a link");
        std::fs::write(path("orgvault-exec-file"), b"").expect("a file");
        // The directory of a running command, and that of one that has exited.
        for (name, command) in [
            ("orgvault-exec-used", Life::of(getpid()).map(|life| life.to_text())),
            ("orgvault-exec-ended", Some("x".into())),
        ] {
            DirBuilder::new().mode(0o700).create(path(name)).expect("a directory");
            std::fs::write(path(name).join(COMMAND), command.expect("this process")).expect("a file");
        }
        remove_abandoned(&places);
        assert!(path("orgvault-exec-used").join(COMMAND).is_file() && !path("orgvault-exec-ended").exists());
        assert!(held.path.is_dir() && !path("orgvault-exec-left").exists());
        for name in ["orgvault-exec-open/key.json", "other/key.json", "orgvault-exec-link", "orgvault-exec-file"] {
            assert!(path(name).exists(), "{name}");
        }
        let left = held.path.clone();
        drop(held);
        assert!(!left.exists());
    }
}
