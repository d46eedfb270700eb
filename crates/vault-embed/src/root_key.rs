//! Root key of a vault: a file, or a key from elsewhere.

use crate::database::exists;
use crate::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::port::Entropy;
use vault_crypto::{LoadedRootKey, SecretFile};

/// The root key of a vault. It is required to open the vault, and no backup contains it.
pub struct RootKey(Source);

enum Source {
    File { path: PathBuf, provisioned: bool },
    Opened(SecretFile),
    Loaded(Arc<LoadedRootKey>),
}

impl RootKey {
    /// Uses the key in the file at `path`, which is created together with the vault. If the key exists without a vault,
    /// the creation is refused, because the database was lost or is elsewhere.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File { path: path.into(), provisioned: false })
    }

    /// Uses the key in the file at `path`, which may exist before the vault. Otherwise it is created together with the
    /// vault.
    pub fn provisioned_file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File { path: path.into(), provisioned: true })
    }

    /// Uses the key in a file that is already open, for processes that have dropped the permission to open it. A new
    /// vault can be created with it.
    pub fn opened(file: SecretFile) -> Self {
        Self(Source::Opened(file))
    }

    /// Uses a key from elsewhere, such as the output of a command. A new vault can be created with it.
    pub fn loaded(key: impl Into<Arc<LoadedRootKey>>) -> Self {
        Self(Source::Loaded(key.into()))
    }

    /// Returns the file for a new key, unless the key exists.
    pub(crate) fn missing_file(&self) -> Result<Option<&Path>, Error> {
        match &self.0 {
            Source::File { path, .. } if !exists(path)? => Ok(Some(path)),
            _ => Ok(None),
        }
    }

    /// Returns the file of a key that only its own vault may use, whether it exists or not.
    pub(crate) fn own_file(&self) -> Option<&Path> {
        match &self.0 {
            Source::File { path, provisioned: false } => Some(path),
            _ => None,
        }
    }

    /// Returns the key, which must exist.
    pub(crate) fn load(self, entropy: Arc<dyn Entropy>) -> Result<Arc<LoadedRootKey>, Error> {
        match self.0 {
            Source::File { path, .. } => Ok(Arc::new(LoadedRootKey::load(&path, entropy)?)),
            Source::Opened(file) => Ok(Arc::new(LoadedRootKey::read(&file, entropy)?)),
            Source::Loaded(key) => Ok(key),
        }
    }

    /// Returns the key, and creates it if its file does not exist.
    pub(crate) fn load_or_generate(self, entropy: Arc<dyn Entropy>) -> Result<Arc<LoadedRootKey>, Error> {
        match self.missing_file()? {
            Some(path) => Ok(Arc::new(LoadedRootKey::generate(path, entropy)?)),
            None => self.load(entropy),
        }
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::File { path, .. } => write!(f, "RootKey({})", path.display()),
            Source::Opened(file) => write!(f, "RootKey({})", file.path().display()),
            Source::Loaded(key) => write!(f, "RootKey({})", key.id()),
        }
    }
}
