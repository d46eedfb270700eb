//! Secrets of others that lie in files: read only if nobody else can.

use crate::failure::Failure;
use rustix::fs::OFlags;
use rustix::process::{getegid, geteuid, getgroups};
use std::fs::{Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use zeroize::Zeroizing;

/// What `path`, which `flag` names, holds: at most `limit` bytes.
///
/// What is opened is judged, not what the path said before: a regular file of this process's user or of root, closed
/// to everybody else. One of root's may also be readable by this process's group, since that is how it is handed over.
pub(crate) fn read(flag: &str, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let flawed = |flaw: &str| Failure::new(format!("{flag}: {} {flaw}", path.display()));
    let unreadable = |error: std::io::Error| flawed(&format!("cannot be read: {error}"));
    // Without waiting for whoever writes to a pipe.
    let options = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(options).open(path).map_err(unreadable)?;
    if let Some(flaw) = judge(&file.metadata().map_err(unreadable)?) {
        return Err(flawed(&flaw));
    }
    let mut content = Zeroizing::new(Vec::with_capacity(limit + 1)); // one that grows leaves copies behind
    file.take(limit as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() > limit { Err(flawed("is too large to be what it should be")) } else { Ok(content) }
}

/// Why a file with a secret is not to be trusted, and how to mend it.
fn judge(found: &Metadata) -> Option<String> {
    if !found.is_file() {
        return Some("is not a regular file".to_owned());
    }
    let we = geteuid().as_raw();
    if found.uid() != we && found.uid() != 0 {
        return Some(format!("is owned by user {}; make this process's user or root its owner (`chown`)", found.uid()));
    }
    let handed_to_us = found.uid() != we && (found.gid() == 0 || is_our_group(found.gid()));
    let refused = if handed_to_us { 0o037 } else { 0o077 };
    let mode = found.mode() & 0o7777;
    (mode & refused != 0).then(|| format!("has mode {mode:04o} and is open to others; run `chmod 600` on it"))
}

fn is_our_group(group: u32) -> bool {
    getegid().as_raw() == group || getgroups().is_ok_and(|groups| groups.iter().any(|ours| ours.as_raw() == group))
}
