//! The root key of a vault: a file, or a key service.

use crate::database::exists;
use crate::error::OpeningError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::port::Entropy;
use vault_crypto::{KeyWrapper, RootKeyFile, SecretFile};

/// The root key of a vault. A vault never opens without it, and no backup contains it.
pub struct RootKey(Source);

enum Source {
    File { path: PathBuf, provisioned: bool },
    Opened(SecretFile),
    Wrapper(Arc<dyn KeyWrapper>),
}

impl RootKey {
    /// The key in the file at `path`, created together with the vault. If the key exists without a vault, creating one is
    /// refused, because the database was lost or is elsewhere.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File { path: path.into(), provisioned: false })
    }

    /// The key in the file at `path`, which may exist before the vault; created together with the vault otherwise.
    pub fn provisioned_file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File { path: path.into(), provisioned: true })
    }

    /// The key in a file that is already open, for processes that have given up the right to open it. A new vault can be
    /// created with it.
    pub fn opened(file: SecretFile) -> Self {
        Self(Source::Opened(file))
    }

    /// A key management service. A new vault can be created with its key.
    pub fn service(wrapper: Arc<dyn KeyWrapper>) -> Self {
        Self(Source::Wrapper(wrapper))
    }

    /// The file for a new key, unless the key exists.
    pub(crate) fn missing_file(&self) -> Result<Option<&Path>, OpeningError> {
        match &self.0 {
            Source::File { path, .. } if !exists(path)? => Ok(Some(path)),
            _ => Ok(None),
        }
    }

    /// The file of a key that only the vault it was made with may use, whether it exists or not.
    pub(crate) fn own_file(&self) -> Option<&Path> {
        match &self.0 {
            Source::File { path, provisioned: false } => Some(path),
            _ => None,
        }
    }

    /// The key, which must exist.
    pub(crate) fn load(self, entropy: Arc<dyn Entropy>) -> Result<Arc<dyn KeyWrapper>, OpeningError> {
        match self.0 {
            Source::File { path, .. } => Ok(Arc::new(RootKeyFile::load(&path, entropy)?)),
            Source::Opened(file) => Ok(Arc::new(RootKeyFile::read(&file, entropy)?)),
            Source::Wrapper(wrapper) => Ok(wrapper),
        }
    }

    /// The key, made if its file does not exist.
    pub(crate) fn load_or_generate(self, entropy: Arc<dyn Entropy>) -> Result<Arc<dyn KeyWrapper>, OpeningError> {
        match self.missing_file()? {
            Some(path) => Ok(Arc::new(RootKeyFile::generate(path, entropy)?)),
            None => self.load(entropy),
        }
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::File { path, .. } => write!(f, "RootKey({})", path.display()),
            Source::Opened(file) => write!(f, "RootKey({})", file.path().display()),
            Source::Wrapper(wrapper) => write!(f, "RootKey({})", wrapper.id()),
        }
    }
}
