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
use crate::root_key::LoadedRootKey;
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
    /// The path exists, the file cannot be written, or the operating system returns no randomness.
    pub fn create(&self, wrapper: &LoadedRootKey, entropy: &dyn Entropy) -> Result<DatabaseKey, DatabaseKeyError> {
        let made = || {
            let (id, key) = (random_key_id(entropy)?, random_key(entropy)?);
            let wrap = wrapper.wrap(&Context::database_key(id), &key)?;
            durable::create_new(&self.path, &Wraps::new(id, wrap)?.to_bytes())?;
            Ok(DatabaseKey(key))
        };
        made().map_err(|error_kind| self.error(error_kind))
    }

    /// Reads the key.
    ///
    /// # Errors
    /// The file is missing or damaged, or is not wrapped by this root key.
    pub fn load(&self, wrapper: &LoadedRootKey) -> Result<DatabaseKey, DatabaseKeyError> {
        let read = || unwrap(&self.read()?, wrapper).map(DatabaseKey);
        read().map_err(|error_kind| self.error(error_kind))
    }

    /// Reads the key from the content of such a file, which was read from elsewhere. Errors contain the path of this
    /// value.
    ///
    /// # Errors
    /// Those of [`DatabaseKeyFile::load`].
    pub fn load_from(&self, content: &[u8], wrapper: &LoadedRootKey) -> Result<DatabaseKey, DatabaseKeyError> {
        let read = || {
            let wraps = Wraps::read(content).ok_or(DatabaseKeyErrorKind::Malformed)?;
            unwrap(&wraps, wrapper).map(DatabaseKey)
        };
        read().map_err(|error_kind| self.error(error_kind))
    }

    /// Starts replacing the root key: adds a wrap with `next`, so that either root key opens the file. Repeating it
    /// changes nothing.
    ///
    /// # Errors
    /// Those of [`DatabaseKeyFile::load`], or another rotation is not finished.
    pub fn begin_root_rotation(&self, current: &LoadedRootKey, next: &LoadedRootKey) -> Result<(), DatabaseKeyError> {
        let started = || {
            let mut wraps = self.read()?;
            let key = unwrap(&wraps, current)?;
            if wraps.under(next.id()).is_some() {
                return Ok(());
            }
            wraps.add(next.wrap(&Context::database_key(wraps.key()), &key)?)?;
            Ok(durable::replace(&self.path, &wraps.to_bytes())?)
        };
        started().map_err(|error_kind| self.error(error_kind))
    }

    /// Finishes replacing the root key: keeps only the wrap with `next`, after verifying that it can be unwrapped.
    ///
    /// # Errors
    /// Those of [`DatabaseKeyFile::load`]. All wraps are kept.
    pub fn finish_root_rotation(&self, next: &LoadedRootKey) -> Result<(), DatabaseKeyError> {
        let finished = || {
            let mut wraps = self.read()?;
            unwrap(&wraps, next)?;
            if wraps.keep_only(next.id()) {
                durable::replace(&self.path, &wraps.to_bytes())?;
            }
            Ok(())
        };
        finished().map_err(|error_kind| self.error(error_kind))
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

fn unwrap(wraps: &Wraps, wrapper: &LoadedRootKey) -> Result<SymmetricKey, DatabaseKeyErrorKind> {
    let Some(wrap) = wraps.under(wrapper.id()) else {
        return Err(DatabaseKeyErrorKind::OtherRoot { wrapped_under: wraps.root_keys(), given: wrapper.id() });
    };
    Ok(wrapper.unwrap(&Context::database_key(wraps.key()), wrap)?)
}

#[cfg(test)]
mod tests;
