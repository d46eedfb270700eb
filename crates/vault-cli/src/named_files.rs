//! Files and ports from flags and the environment, opened while this process still had root privileges.

use crate::failure::Failure;
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_crypto::{SecretFile, SecretFileError, SecretFileErrorKind};
use zeroize::Zeroizing;

/// Lowest port that every user may bind (ip(7)).
const UNPRIVILEGED: u16 = 1024;

/// Files and addresses from flags and the environment. The process may open them with its initial privileges, because
/// the invoking user named them.
pub struct Named {
    /// Data directory.
    pub data_dir: PathBuf,
    /// Embedded database, if it is named and not in the data directory.
    pub database: Option<PathBuf>,
    /// Secret files.
    pub secrets: Vec<PathBuf>,
    /// Other files.
    pub texts: Vec<PathBuf>,
    /// Addresses to listen on, each with its flag.
    pub addresses: Vec<(&'static str, SocketAddr)>,
}

/// Opened files by path. Other files are opened when they are read, with the privileges that the process has then.
#[derive(Default)]
pub struct NamedFiles {
    secrets: BTreeMap<PathBuf, SecretFile>,
    texts: BTreeMap<PathBuf, File>,
    /// Sockets at privileged ports.
    sockets: BTreeMap<SocketAddr, Arc<OwnedFd>>,
}

impl NamedFiles {
    /// Opens the existing files and binds the privileged ports.
    pub fn open(named: &Named) -> Result<Self, Failure> {
        let mut files = Self::default();
        for path in &named.secrets {
            match SecretFile::open(path) {
                Ok(file) => drop(files.secrets.insert(path.clone(), file)),
                Err(error) if matches!(error.error_kind(), SecretFileErrorKind::Missing) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for path in &named.texts {
            match File::open(path) {
                Ok(file) => drop(files.texts.insert(path.clone(), file)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::new(format!("{} cannot be read: {error}", path.display()))),
            }
        }
        for (flag, address) in &named.addresses {
            if !(1..UNPRIVILEGED).contains(&address.port()) {
                continue;
            }
            let socket = bound(*address).map_err(|error| Failure::cannot_listen(flag, address, &error.into()))?;
            files.sockets.insert(*address, Arc::new(socket));
        }
        Ok(files)
    }

    /// Opens the file at `path`, if this process runs as root and only root can modify the file.
    pub fn of_root(path: &Path) -> Option<Self> {
        let file = File::open(path).ok().filter(|_| geteuid().is_root())?;
        let found = file.metadata().ok()?;
        let of_root = found.is_file() && found.uid() == 0 && found.mode() & 0o022 == 0;
        of_root.then(|| Self { texts: BTreeMap::from([(path.to_owned(), file)]), ..Self::default() })
    }

    /// Returns the socket at `address`, if it was bound before the switch.
    pub fn bound_socket(&self, address: SocketAddr) -> Option<Arc<OwnedFd>> {
        self.sockets.get(&address).cloned()
    }

    /// Returns the secret file at `path`, if it was opened before the switch.
    pub fn opened_secret(&self, path: &Path) -> io::Result<Option<SecretFile>> {
        self.secrets.get(path).map(SecretFile::try_clone).transpose()
    }

    /// Reads at most `limit` bytes from the secret file at `path`.
    pub(crate) fn read_secret(&self, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, SecretFileError> {
        match self.secrets.get(path) {
            Some(file) => file.read(limit),
            None => SecretFile::open(path)?.read(limit),
        }
    }

    /// Reads at most `limit` bytes from the file at `path`.
    pub fn read_text(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut file = match self.texts.get(path) {
            Some(file) => file.try_clone()?,
            None => File::open(path)?,
        };
        if self.texts.contains_key(path) {
            file.rewind()?; // it may have been read before
        }
        let mut content = Vec::new();
        file.take(limit).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// Creates a socket that is bound to `address` but does not listen yet.
fn bound(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket)
}
