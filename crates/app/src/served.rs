//! The address at which this vault was last served. Commands use it in the URLs that they print.

use crate::settings::{PublicUrl, Settings};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Maximum length of the URL in bytes.
const LONGEST: u64 = 1_000;

fn file(settings: &Settings) -> PathBuf {
    settings.data_dir.join("orgvault.url")
}

/// Records the address of the server. Errors are ignored, because a server may have no writable data directory.
pub(crate) fn note(settings: &Settings, address: SocketAddr) {
    let url = settings.server.origin_url(address);
    let path = file(settings);
    let new = path.with_extension("url.new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| writeln!(file, "{url}"))
        .and_then(|()| std::fs::rename(&new, &path));
    if let Err(error) = written {
        tracing::debug!("{} was not written: {error}", path.display());
    }
}

/// Returns the URL at which the vault was last served from this data directory.
pub(crate) fn last(settings: &Settings) -> Option<PublicUrl> {
    let mut text = String::new();
    File::open(file(settings)).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
