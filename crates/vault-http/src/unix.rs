//! A Unix socket. It is connectable only after it has its mode, and is removed when the listener stops.

use crate::settings::UnixSocket;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a socket. It is removed on drop, unless another file has replaced it.
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Device, inode and time of a file. The time is needed because inodes are reused.
type Identity = (u64, u64, i64, i64);

fn identity(path: &Path) -> io::Result<Identity> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(socket = %self.path.display(), %error, "the socket could not be removed");
        }
    }
}

/// Creates a listener at the socket's path. Replaces a socket that a killed process left behind.
///
/// # Errors
/// Another process serves the socket, another file has its name, or it cannot be created.
pub(crate) fn bind(socket: &UnixSocket) -> io::Result<(UnixListener, SocketFile)> {
    let path = socket.path.clone();
    bind_at(&path, socket.mode)
        .map_err(|error| io::Error::new(error.kind(), format!("the socket {}: {error}", path.display())))
}

fn bind_at(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let refused = |kind, reason: &str| Err(io::Error::new(kind, reason));
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return refused(ErrorKind::NotFound, &format!("the directory {} does not exist", directory.display()));
    }
    if fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        return refused(
            ErrorKind::AlreadyExists,
            "a file with this name exists and is not a socket; it was not replaced",
        );
    }
    if UnixStream::connect(path).is_ok() {
        return refused(ErrorKind::AddrInUse, "another process listens on it");
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let _ = fs::remove_file(&unfinished); // of a killed process
    let listener = UnixListener::bind(&unfinished)?;
    fs::set_permissions(&unfinished, Permissions::from_mode(mode))?;
    fs::rename(&unfinished, path)?;
    Ok((listener, SocketFile { path: path.to_owned(), identity: identity(path)? }))
}
