//! Secrets of others that lie in files: read only if nobody else can.

use crate::failure::Failure;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use vault_crypto::check_secret_file;
use zeroize::Zeroizing;

/// What `path`, which `flag` names, holds: at most `limit` bytes.
///
/// What is opened is judged as a root key file is, by [`check_secret_file`].
pub(crate) fn read(flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let flawed = |flaw: &str| Failure::new(format!("{flag}: {} {flaw}", path.display()));
    let unreadable = |error: std::io::Error| flawed(&format!("cannot be read: {error}"));
    // Without waiting for whoever writes to a pipe.
    let options = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(options).open(path).map_err(unreadable)?;
    check_secret_file(&file).map_err(|flaw| flawed(&flaw.to_string()))?;
    let mut content = Zeroizing::new(Vec::with_capacity(limit + 1)); // one that grows leaves copies behind
    file.take(limit as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() > limit { Err(flawed("is too large to be what it should be")) } else { Ok(content) }
}
