//! Reading and making the file.

use super::RootKeyFlaw;
use super::locate;
use super::weak::weakness;
use crate::durable;
use crate::entropy::random_key;
use crate::key::SymmetricKey;
use crate::secret_file::check_secret_file;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use vault_core::port::Entropy;
use zeroize::Zeroizing;

/// Reads the key at `path`.
pub(super) fn read(path: &Path) -> Result<SymmetricKey, RootKeyFlaw> {
    let file = locate::open(path)?;
    check_secret_file(&file)?;
    let key = read_exactly(file)?;
    match weakness(&key) {
        Some(weakness) => Err(RootKeyFlaw::Weak(weakness)),
        None => Ok(key),
    }
}

fn read_exactly(file: OwnedFd) -> Result<SymmetricKey, RootKeyFlaw> {
    // One byte more than a key has, so that a longer file shows.
    let mut bytes = Zeroizing::new([0; SymmetricKey::LENGTH + 1]);
    let mut file = File::from(file);
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    if length != SymmetricKey::LENGTH {
        return Err(RootKeyFlaw::Length);
    }
    SymmetricKey::try_fill(|key| {
        key.copy_from_slice(&bytes[..SymmetricKey::LENGTH]);
        Ok(())
    })
}

/// Makes a new key at `path`.
pub(super) fn create(path: &Path, entropy: &dyn Entropy) -> Result<SymmetricKey, RootKeyFlaw> {
    let key = random_key(entropy)?;
    durable::create_new(path, key.expose())?; // written to its file
    Ok(key)
}
