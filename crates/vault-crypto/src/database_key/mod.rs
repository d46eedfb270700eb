//! The key of the embedded database: random, and stored in a file next to it, wrapped by the root key.
//!
//! While the root key is being replaced, the file contains two wraps of the same key. Every backup contains it.

mod error;
mod wraps;

pub use error::DatabaseKeyError;
use error::DatabaseKeyErrorKind;

use crate::context::Context;
use crate::durable;
use crate::entropy::{random_key, random_key_id};
use crate::key::SymmetricKey;
use crate::wrapper::KeyWrapper;
use secrecy::SecretString;
use std::path::{Path, PathBuf};
use vault_core::id::KeyId;
use vault_core::port::Entropy;
use wraps::Wraps;
use zeroize::Zeroizing;

/// The unwrapped key of an embedded database. It is wiped when dropped.
#[derive(Debug)]
pub struct DatabaseKey(SymmetricKey);

impl DatabaseKey {
    /// Returns the bytes of the key, for the database adapter.
    pub fn expose_bytes(&self) -> Zeroizing<[u8; SymmetricKey::LENGTH]> {
        Zeroizing::new(*self.0.expose()) // passed to the database
    }

    /// Returns the key as 64 hexadecimal digits, for `PRAGMA key = "x'…'"`.
    pub fn expose_hex(&self) -> SecretString {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Allocate the final size, because growing would leave copies of the secret in memory.
        let mut text = Zeroizing::new(String::with_capacity(2 * SymmetricKey::LENGTH));
        // The key is passed to the database.
        for byte in self.0.expose() {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        // Copy it, so that the buffer is wiped here.
        SecretString::from(text.as_str())
    }
}

/// The file next to an embedded database that contains its wrapped key.
#[derive(Clone, Debug)]
pub struct DatabaseKeyFile {
    path: PathBuf,
}

impl DatabaseKeyFile {
    /// References the file at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// References the file next to `database`: the same name with the suffix `.key`.
    pub fn next_to(database: &Path) -> Self {
        let mut path = database.to_owned().into_os_string();
        path.push(".key");
        Self::at(path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Generates a key and creates its file, which is synced to the disk when this returns.
    ///
    /// # Errors
    /// The path exists, the file cannot be written, or the key cannot be wrapped.
    pub async fn create(
        &self,
        wrapper: &dyn KeyWrapper,
        entropy: &dyn Entropy,
    ) -> Result<DatabaseKey, DatabaseKeyError> {
        let made = async {
            let (id, key) = (random_key_id(entropy)?, random_key(entropy)?);
            let wrap = wrapper.wrap(&Context::database_key(id), &key).await?;
            durable::create_new(&self.path, &Wraps::new(id, wrap)?.to_bytes())?;
            Ok(DatabaseKey(key))
        };
        made.await.map_err(|error_kind| self.error(error_kind))
    }

    /// Reads the key.
    ///
    /// # Errors
    /// The file is missing or damaged, or is not wrapped by this root key.
    pub async fn load(&self, wrapper: &dyn KeyWrapper) -> Result<DatabaseKey, DatabaseKeyError> {
        let read = async { unwrap(&self.read()?, wrapper).await.map(DatabaseKey) };
        read.await.map_err(|error_kind| self.error(error_kind))
    }

    /// Reads the key from the content of such a file, which was read from elsewhere. Errors contain the path of this
    /// value.
    ///
    /// # Errors
    /// Those of [`DatabaseKeyFile::load`].
    pub async fn load_from(&self, content: &[u8], wrapper: &dyn KeyWrapper) -> Result<DatabaseKey, DatabaseKeyError> {
        let read = async {
            let wraps = Wraps::read(content).ok_or(DatabaseKeyErrorKind::Malformed)?;
            unwrap(&wraps, wrapper).await.map(DatabaseKey)
        };
        read.await.map_err(|error_kind| self.error(error_kind))
    }

    /// Starts replacing the root key: adds a wrap with `next`, so that either root key opens the file. Repeating it
    /// changes nothing.
    ///
    /// # Errors
    /// Those of [`DatabaseKeyFile::load`], or another rotation is not finished.
    pub async fn begin_root_rotation(
        &self,
        current: &dyn KeyWrapper,
        next: &dyn KeyWrapper,
    ) -> Result<(), DatabaseKeyError> {
        let started = async {
            let mut wraps = self.read()?;
            let key = unwrap(&wraps, current).await?;
            if wraps.under(next.id()).is_some() {
                return Ok(());
            }
            wraps.add(next.wrap(&Context::database_key(wraps.key()), &key).await?)?;
            Ok(durable::replace(&self.path, &wraps.to_bytes())?)
        };
        started.await.map_err(|error_kind| self.error(error_kind))
    }

    /// Finishes replacing the root key: keeps only the wrap with `next`, after verifying that it can be unwrapped.
    ///
    /// # Errors
    /// Those of [`DatabaseKeyFile::load`]. All wraps are kept.
    pub async fn finish_root_rotation(&self, next: &dyn KeyWrapper) -> Result<(), DatabaseKeyError> {
        let finished = async {
            let mut wraps = self.read()?;
            unwrap(&wraps, next).await?;
            if wraps.keep_only(next.id()) {
                durable::replace(&self.path, &wraps.to_bytes())?;
            }
            Ok(())
        };
        finished.await.map_err(|error_kind| self.error(error_kind))
    }

    /// Returns the IDs of the root keys that open the file: two while the root key is being replaced.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn root_keys(&self) -> Result<Vec<KeyId>, DatabaseKeyError> {
        self.read().map(|wraps| wraps.root_keys()).map_err(|error_kind| self.error(error_kind))
    }

    fn read(&self) -> Result<Wraps, DatabaseKeyErrorKind> {
        Wraps::read(&std::fs::read(&self.path)?).ok_or(DatabaseKeyErrorKind::Malformed)
    }

    fn error(&self, error_kind: DatabaseKeyErrorKind) -> DatabaseKeyError {
        DatabaseKeyError::new(&self.path, error_kind)
    }
}

async fn unwrap(wraps: &Wraps, wrapper: &dyn KeyWrapper) -> Result<SymmetricKey, DatabaseKeyErrorKind> {
    let Some(wrap) = wraps.under(wrapper.id()) else {
        return Err(DatabaseKeyErrorKind::OtherRoot { wrapped_under: wraps.root_keys(), given: wrapper.id() });
    };
    Ok(wrapper.unwrap(&Context::database_key(wraps.key()), wrap).await?)
}

#[cfg(test)]
mod tests;
