//! Root key: exactly 32 random bytes.

mod decode;
mod error;
mod file;
mod weak;

pub use error::{RootKeyError, RootKeyErrorKind};

use crate::aead::{AeadKey, SealingError};
use crate::blob::OpenError;
use crate::context::Context;
use crate::derive::Label;
use crate::key::SymmetricKey;
use crate::secret_file::SecretFile;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use vault_core::id::KeyId;
use vault_core::port::Entropy;
use vault_core::sealed::Blob;

/// A root key in memory. It wraps two keys: that of the embedded database, and the instance key.
pub struct LoadedRootKey {
    wrap: AeadKey,
    entropy: Arc<dyn Entropy>,
}

impl LoadedRootKey {
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
    /// Same as [`LoadedRootKey::load`].
    pub fn read(file: &SecretFile, entropy: Arc<dyn Entropy>) -> Result<Self, RootKeyError> {
        Ok(Self::new(&file::read(file)?, entropy))
    }

    /// Decodes the output of a command: 32 bytes, or the same in hexadecimal or base64, and at most one line feed.
    ///
    /// # Errors
    /// The output is not a random key. The error does not contain it.
    pub fn decode(output: &[u8], entropy: Arc<dyn Entropy>) -> Result<Self, RootKeyErrorKind> {
        Ok(Self::new(&decode::decode(output)?, entropy))
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

    /// Returns the root key's ID in its blobs.
    pub const fn id(&self) -> KeyId {
        self.wrap.id()
    }

    /// Wraps a key, bound to `context`.
    pub(crate) fn wrap(&self, context: &Context, key: &SymmetricKey) -> Result<Blob, SealingError> {
        self.wrap.wrap(&*self.entropy, context, key)
    }

    /// Unwraps a key that was wrapped for the same `context`.
    pub(crate) fn unwrap(&self, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, OpenError> {
        self.wrap.unwrap(context, wrapped)
    }
}

/// Returns the id of a root key. It is derived from the key, so a wrong key is recognised by its id.
fn key_id(key: &SymmetricKey) -> KeyId {
    let derived = Label::RootKeyId.derive(key);
    let mut id = [0; 16];
    id.copy_from_slice(&derived.expose()[..16]); // derived to be shown
    KeyId::from_bytes(id)
}

impl fmt::Debug for LoadedRootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedRootKey({})", self.id())
    }
}

#[cfg(test)]
mod tests;
