//! The embedded database's key: random, in a file beside it, wrapped under the root key.
//!
//! While the root key is replaced, the file holds two wraps of the same key. It belongs to every backup.

mod error;
mod wraps;

pub use error::DatabaseKeyError;
use error::DatabaseKeyFlaw;

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

/// The key of an embedded database, unwrapped. Wiped when dropped.
#[derive(Debug)]
pub struct DatabaseKey(SymmetricKey);

impl DatabaseKey {
    /// The key's bytes, for the database adapter.
    pub fn expose_bytes(&self) -> Zeroizing<[u8; SymmetricKey::LENGTH]> {
        Zeroizing::new(*self.0.expose()) // handed to the database
    }

    /// The key as 64 hexadecimal digits: what stands between the quotes of `PRAGMA key = "x'…'"`.
    pub fn expose_hex(&self) -> SecretString {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Of the final size at once: growing would leave copies behind.
        let mut text = Zeroizing::new(String::with_capacity(2 * SymmetricKey::LENGTH));
        // The key is handed to the database.
        for byte in self.0.expose() {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        // Copied, so that the buffer is wiped here.
        SecretString::from(text.as_str())
    }
}

/// The file beside an embedded database that holds its wrapped key.
#[derive(Clone, Debug)]
pub struct DatabaseKeyFile {
    path: PathBuf,
}

impl DatabaseKeyFile {
    /// The file at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file beside `database`: the same name with `.key` after it.
    pub fn beside(database: &Path) -> Self {
        let mut path = database.to_owned().into_os_string();
        path.push(".key");
        Self::at(path)
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a new key and its file, which is on disk when this returns.
    ///
    /// # Errors
    /// There already is something at the path, it cannot be written, or the key cannot be wrapped.
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
        made.await.map_err(|flaw| self.error(flaw))
    }

    /// Reads the key.
    ///
    /// # Errors
    /// The file is missing or damaged, or this is not the root key that it is wrapped under.
    pub async fn load(&self, wrapper: &dyn KeyWrapper) -> Result<DatabaseKey, DatabaseKeyError> {
        let read = async { unwrap(&self.read()?, wrapper).await.map(DatabaseKey) };
        read.await.map_err(|flaw| self.error(flaw))
    }

    /// Reads the key from what such a file contains, which was read from elsewhere; errors name the path of this value.
    ///
    /// # Errors
    /// As for [`DatabaseKeyFile::load`].
    pub async fn load_from(&self, content: &[u8], wrapper: &dyn KeyWrapper) -> Result<DatabaseKey, DatabaseKeyError> {
        let read = async {
            let wraps = Wraps::read(content).ok_or(DatabaseKeyFlaw::Malformed)?;
            unwrap(&wraps, wrapper).await.map(DatabaseKey)
        };
        read.await.map_err(|flaw| self.error(flaw))
    }

    /// Begins replacing the root key: adds a wrap under `next`, so that either root key opens the file. Done
    /// again, it changes nothing.
    ///
    /// # Errors
    /// As for [`DatabaseKeyFile::load`], or another rotation has not been finished.
    pub async fn begin_root_rotation(
        &self,
        current: &dyn KeyWrapper,
        next: &dyn KeyWrapper,
    ) -> Result<(), DatabaseKeyError> {
        let begun = async {
            let mut wraps = self.read()?;
            let key = unwrap(&wraps, current).await?;
            if wraps.under(next.id()).is_some() {
                return Ok(());
            }
            wraps.add(next.wrap(&Context::database_key(wraps.key()), &key).await?)?;
            Ok(durable::replace(&self.path, &wraps.to_bytes())?)
        };
        begun.await.map_err(|flaw| self.error(flaw))
    }

    /// Ends replacing the root key: leaves the wrap under `next` alone, once it has been seen to open.
    ///
    /// # Errors
    /// As for [`DatabaseKeyFile::load`]; then every wrap stays.
    pub async fn finish_root_rotation(&self, next: &dyn KeyWrapper) -> Result<(), DatabaseKeyError> {
        let finished = async {
            let mut wraps = self.read()?;
            unwrap(&wraps, next).await?;
            if wraps.keep_only(next.id()) {
                durable::replace(&self.path, &wraps.to_bytes())?;
            }
            Ok(())
        };
        finished.await.map_err(|flaw| self.error(flaw))
    }

    /// The ids of the root keys that open the file: two while the root key is replaced.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn root_keys(&self) -> Result<Vec<KeyId>, DatabaseKeyError> {
        self.read().map(|wraps| wraps.root_keys()).map_err(|flaw| self.error(flaw))
    }

    fn read(&self) -> Result<Wraps, DatabaseKeyFlaw> {
        Wraps::read(&std::fs::read(&self.path)?).ok_or(DatabaseKeyFlaw::Malformed)
    }

    fn error(&self, flaw: DatabaseKeyFlaw) -> DatabaseKeyError {
        DatabaseKeyError::new(&self.path, flaw)
    }
}

async fn unwrap(wraps: &Wraps, wrapper: &dyn KeyWrapper) -> Result<SymmetricKey, DatabaseKeyFlaw> {
    let Some(wrap) = wraps.under(wrapper.id()) else {
        return Err(DatabaseKeyFlaw::OtherRoot { wrapped_under: wraps.root_keys(), given: wrapper.id() });
    };
    Ok(wrapper.unwrap(&Context::database_key(wraps.key()), wrap).await?)
}

#[cfg(test)]
mod tests;
