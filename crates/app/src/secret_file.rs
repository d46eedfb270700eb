//! Secrets in files that flags name: read only if nobody else can.

use crate::failure::Failure;
use crate::run_as::NamedFiles;
use std::io::Read as _;
use std::path::Path;
use zeroize::Zeroizing;

/// The content of the file at `path`, which `flag` names: at most `limit` bytes.
pub(crate) fn read(files: &NamedFiles, flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    files.read_secret(path, limit).map_err(|error| Failure::new(format!("{flag}: {error}")))
}

/// The same, with `-` for standard input, of which at most `limit` bytes are read.
pub(crate) fn read_or_stdin(
    files: &NamedFiles,
    flag: &str,
    path: &Path,
    limit: usize,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if path.as_os_str() != "-" {
        return read(files, flag, path, limit);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit)); // one that grows leaves copies behind
    let read = std::io::stdin().lock().take(u64::try_from(limit).unwrap_or(u64::MAX)).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("{flag}: cannot read standard input: {error}")))?;
    Ok(bytes)
}
