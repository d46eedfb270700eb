//! Reads and creates the root key file.

use super::weak::weakness;
use super::{RootKeyError, RootKeyErrorKind};
use crate::durable;
use crate::entropy::random_key;
use crate::key::SymmetricKey;
use crate::secret_file::SecretFile;
use std::path::Path;
use vault_core::port::Entropy;
use zeroize::Zeroizing;

/// Reads the key from `file`.
pub(super) fn read(file: &SecretFile) -> Result<SymmetricKey, RootKeyError> {
    let flawed = |error_kind| RootKeyError::new(file.path(), error_kind);
    let bytes = file.read(SymmetricKey::LENGTH)?;
    let mut exact = Zeroizing::new([0; SymmetricKey::LENGTH]);
    if bytes.len() != exact.len() {
        return Err(flawed(RootKeyErrorKind::Length(bytes.len() as u64)));
    }
    exact.copy_from_slice(&bytes);
    let key = SymmetricKey::take(&mut exact);
    match weakness(&key) {
        Some(weakness) => Err(flawed(RootKeyErrorKind::Weak(weakness))),
        None => Ok(key),
    }
}

/// Creates a new key at `path`.
pub(super) fn create(path: &Path, entropy: &dyn Entropy) -> Result<SymmetricKey, RootKeyErrorKind> {
    let key = random_key(entropy)?;
    durable::create_new(path, key.expose())?; // written to its file
    Ok(key)
}
