//! Root key in a file: exactly 32 random bytes.

mod error;
mod file;
mod service;
mod weak;

pub use error::{RootKeyError, RootKeyErrorKind};
pub use service::ServiceRootKey;

use crate::aead::AeadKey;
use crate::context::Context;
use crate::derive::Label;
use crate::key::SymmetricKey;
use crate::secret_file::SecretFile;
use crate::wrapper::{KeyWrapper, WrapError};
use async_trait::async_trait;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use vault_core::id::KeyId;
use vault_core::port::Entropy;
use vault_core::sealed::Blob;

/// A root key read from a file.
pub struct RootKeyFile {
    wrap: AeadKey,
    entropy: Arc<dyn Entropy>,
}

impl RootKeyFile {
    /// Reads the root key at `path`.
    ///
    /// The content must be exactly 32 bytes that are not text, an example or all equal, in a file that [`SecretFile`]
    /// accepts.
    ///
    /// # Errors
    /// Returns the path, the reason and what to do; never the content.
    pub fn load(path: &Path, entropy: Arc<dyn Entropy>) -> Result<Self, RootKeyError> {
        Self::read(&SecretFile::open(path)?, entropy)
    }

    /// Reads the root key from a file that is already open.
    ///
    /// # Errors
    /// Same as [`RootKeyFile::load`].
    pub fn read(file: &SecretFile, entropy: Arc<dyn Entropy>) -> Result<Self, RootKeyError> {
        Ok(Self::new(&file::read(file)?, entropy))
    }

    /// Creates a new root key at `path`, readable only by its owner and written to disk when this function returns.
    ///
    /// # Errors
    /// - `path` already exists.
    /// - The file cannot be written.
    /// - There is no entropy.
    pub fn generate(path: &Path, entropy: Arc<dyn Entropy>) -> Result<Self, RootKeyError> {
        let key = file::create(path, &*entropy).map_err(|error_kind| RootKeyError::new(path, error_kind))?;
        Ok(Self::new(&key, entropy))
    }

    fn new(key: &SymmetricKey, entropy: Arc<dyn Entropy>) -> Self {
        Self { wrap: Label::RootWrap.sealing_key(key, key_id(key)), entropy }
    }
}

/// Returns the id of a root key. It is derived from the key, so a wrong key is recognised by its id.
fn key_id(key: &SymmetricKey) -> KeyId {
    let derived = Label::RootKeyId.derive(key);
    let mut id = [0; 16];
    id.copy_from_slice(&derived.expose()[..16]); // derived to be shown
    KeyId::from_bytes(id)
}

#[async_trait]
impl KeyWrapper for RootKeyFile {
    fn id(&self) -> KeyId {
        self.wrap.id()
    }

    async fn wrap(&self, context: &Context, key: &SymmetricKey) -> Result<Blob, WrapError> {
        self.wrap.wrap(&*self.entropy, context, key).map_err(|error| WrapError::Source(error.into()))
    }

    async fn unwrap(&self, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, WrapError> {
        Ok(self.wrap.unwrap(context, wrapped)?)
    }
}

impl fmt::Debug for RootKeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootKeyFile({})", self.id())
    }
}

#[cfg(test)]
mod tests;
