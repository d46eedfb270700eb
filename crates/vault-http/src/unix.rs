//! A socket in the file system: made so that at no moment anybody may connect whom its mode does not allow, and gone
//! when the listener stops.

use crate::settings::UnixSocket;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;

/// How often, and how long in between, it is tried to have the directory for oneself.
const TURNS: u32 = 100;
const TURN: Duration = Duration::from_millis(20);

/// The file of a socket; removed when dropped, unless another one stands in its place by then.
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Device, number and time of a file: numbers are given out again.
type Identity = (u64, u64, (i64, i64));

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the socket stays behind");
        }
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino(), (found.mtime(), found.mtime_nsec())))
}

/// A listener at the socket's path. What a process left there that is no more is replaced.
///
/// # Errors
/// Another process serves the socket, something else stands in its place, or there cannot be one.
pub(crate) fn bind(socket: &UnixSocket, backlog: u32, runtime: &Handle) -> io::Result<(UnixListener, SocketFile)> {
    bind_in_turn(socket, backlog, runtime)
        .map_err(|error| io::Error::new(error.kind(), format!("the socket {}: {error}", socket.path.display())))
}

fn bind_in_turn(socket: &UnixSocket, backlog: u32, runtime: &Handle) -> io::Result<(UnixListener, SocketFile)> {
    let path = &*socket.path;
    let _context = runtime.enter(); // tokio's sockets register with a runtime even to be handed out again
    let _turn = take_turn(path)?;
    make_room(path)?;
    let unbound = tokio::net::UnixSocket::new_stream()?;
    unbound.bind(path)?;
    let file = SocketFile::at(path)?;
    // The process's mask would have its say, and belongs to all threads. Nobody can connect before it listens.
    fs::set_permissions(path, Permissions::from_mode(socket.mode))?;
    Ok((unbound.listen(backlog)?.into_std()?, file))
}

/// A lock on the directory: of two that start at once, one would else take the other's socket, not listening yet, for
/// a stale one.
fn take_turn(path: &Path) -> io::Result<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = File::open(directory)?;
    for _ in 0..TURNS {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) => thread::sleep(TURN),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process holds a lock on its directory"))
}

/// Removes the socket of a process that is no more.
fn make_room(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let reason = "something else stands there, and is left alone";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process serves it")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}
