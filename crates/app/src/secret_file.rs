//! Secrets in files that flags name: read only if nobody else can.

use crate::failure::Failure;
use crate::run_as::NamedFiles;
use std::path::Path;
use zeroize::Zeroizing;

/// The content of the file at `path`, which `flag` names: at most `limit` bytes.
pub(crate) fn read(files: &NamedFiles, flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    files.read_secret(path, limit).map_err(|error| Failure::new(format!("{flag}: {error}")))
}
