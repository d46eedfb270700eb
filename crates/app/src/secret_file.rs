//! Secrets in files that flags name: read only if nobody else can.

use crate::failure::Failure;
use std::path::Path;
use vault_crypto::SecretFile;
use zeroize::Zeroizing;

/// The content of the file at `path`, which `flag` names: at most `limit` bytes.
pub(crate) fn read(flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let read = SecretFile::open(path).and_then(|file| file.read(limit));
    read.map_err(|error| Failure::new(format!("{flag}: {error}")))
}
