//! A Unix socket. At no time can a user connect whom its mode does not allow, and it is removed when the listener
//! stops.
//!
//! All operations use the opened directory and follow no symbolic link in it. The socket is created and gets its mode
//! in a directory that only this process's user can enter. It is moved to its path after it listens.

use crate::settings::UnixSocket;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::fs::{CWD, chmodat, flock, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;

/// Maximum number of attempts to lock the directory, and the pause between them.
const TURNS: u32 = 100;
const TURN: Duration = Duration::from_millis(20);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Name of the socket in its private directory.
const UNFINISHED: &str = "s";

/// The file of a socket. It is removed on drop, unless another file has replaced it.
pub(crate) struct SocketFile {
    directory: OwnedFd,
    name: OsString,
    identity: Identity,
}

/// Device, inode and time of a file. The time is needed because inodes are reused.
type Identity = (u64, u64, (i64, u64));

impl Drop for SocketFile {
    fn drop(&mut self) {
        if look(&self.directory, &self.name).is_ok_and(|found| identity(&found) == self.identity)
            && let Err(error) = unlinkat(&self.directory, &self.name, AtFlags::empty())
        {
            tracing::warn!(socket = ?self.name, %error, "the socket could not be removed");
        }
    }
}

#[expect(clippy::unnecessary_cast, reason = "the types differ from machine to machine")]
fn identity(found: &Stat) -> Identity {
    (found.st_dev as u64, found.st_ino as u64, (found.st_mtime as i64, found.st_mtime_nsec as u64))
}

fn look(directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<Stat> {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Creates a listener at the socket's path. Replaces a socket that a killed process left behind.
///
/// # Errors
/// Another process serves the socket, another file has its name, or it cannot be created.
pub(crate) fn bind(socket: &UnixSocket, backlog: u32, runtime: &Handle) -> io::Result<(UnixListener, SocketFile)> {
    bind_in_turn(socket, backlog, runtime)
        .map_err(|error| io::Error::new(error.kind(), format!("the socket {}: {error}", socket.path.display())))
}

fn bind_in_turn(socket: &UnixSocket, backlog: u32, runtime: &Handle) -> io::Result<(UnixListener, SocketFile)> {
    SocketAddr::from_pathname(&socket.path)?; // within the length that clients can address
    let name =
        socket.path.file_name().ok_or_else(|| refused(io::ErrorKind::InvalidInput, "the path has no file name"))?;
    let _context = runtime.enter(); // tokio's sockets register with a runtime even if they are converted afterwards
    let directory = open_directory(&socket.path)?;
    wait_for_turn(&directory)?;
    make_room(&directory, name)?;
    let private = PrivateDirectory::create(&directory, name)?;
    let unbound = tokio::net::UnixSocket::new_stream()?;
    unbound.bind(private.path(UNFINISHED))?;
    // Set the mode explicitly, because the umask would restrict it and applies to all threads.
    chmodat(&private.opened, UNFINISHED, Mode::from_raw_mode(socket.mode), AtFlags::empty())?;
    let listener = unbound.listen(backlog)?.into_std()?;
    renameat(&private.opened, UNFINISHED, &directory, name)?;
    let identity = identity(&look(&directory, name)?);
    drop(private);
    flock(&directory, FlockOperation::Unlock)?;
    Ok((listener, SocketFile { directory, name: name.to_owned(), identity }))
}

fn refused(kind: io::ErrorKind, reason: impl Into<String>) -> io::Error {
    io::Error::new(kind, reason.into())
}

fn open_directory(socket: &Path) -> io::Result<OwnedFd> {
    let directory = socket.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    openat(CWD, directory, DIRECTORY, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => {
            refused(io::ErrorKind::NotFound, format!("the directory {} does not exist", directory.display()))
        }
        error => error.into(),
    })
}

/// Locks the directory. If two processes start at the same time and find the same stale socket, the second one could
/// otherwise remove the socket of the first.
fn wait_for_turn(directory: &OwnedFd) -> io::Result<()> {
    for _ in 0..TURNS {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => thread::sleep(TURN),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused(io::ErrorKind::ResourceBusy, "another process has locked its directory"))
}

/// Removes the socket of a process that has exited.
fn make_room(directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let found = match look(directory, name) {
        Err(Errno::NOENT) => return Ok(()),
        found => found?,
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(refused(
            io::ErrorKind::AlreadyExists,
            "a file with this name exists and is not a socket; it was not replaced",
        ));
    }
    match UnixStream::connect(in_opened(directory, name)) {
        Ok(_) => Err(refused(io::ErrorKind::AddrInUse, "another process listens on it")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(unlinkat(directory, name, AtFlags::empty())?)
        }
        Err(error) => Err(error),
    }
}

/// Returns a path to `name` in an open directory. It is short enough for a socket, and always refers to the same
/// directory.
fn in_opened(directory: &OwnedFd, name: impl AsRef<Path>) -> PathBuf {
    Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)
}

/// A directory with mode 0700, removed on drop.
struct PrivateDirectory<'a> {
    parent: &'a OwnedFd,
    name: OsString,
    opened: OwnedFd,
}

impl<'a> PrivateDirectory<'a> {
    /// Creates the directory in `parent`, or reuses the one that a killed process left behind.
    fn create(parent: &'a OwnedFd, socket: &OsStr) -> io::Result<Self> {
        let mut name = OsString::from(".");
        name.push(socket);
        name.push(".new");
        match mkdirat(parent, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let foreign = || {
            refused(
                io::ErrorKind::AlreadyExists,
                format!("{} exists and is not a private directory of this user", name.display()),
            )
        };
        let opened = openat(parent, &name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map_err(|_| foreign())?;
        let found = fstat(&opened)?;
        if found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 {
            return Err(foreign());
        }
        match unlinkat(&opened, UNFINISHED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { parent, name, opened })
    }

    fn path(&self, name: &str) -> PathBuf {
        in_opened(&self.opened, name)
    }
}

impl Drop for PrivateDirectory<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(&self.opened, UNFINISHED, AtFlags::empty()); // remains only after a failure
        let _ = unlinkat(self.parent, &self.name, AtFlags::REMOVEDIR); // the next start reuses it
    }
}
