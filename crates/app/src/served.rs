//! The address at which this vault was served last, so that commands print lines that lead there.

use crate::settings::{PublicUrl, Settings};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// The longest URL that is read, in bytes.
const LONGEST: u64 = 1_000;

fn file(settings: &Settings) -> PathBuf {
    settings.data_dir.join("orgvault.url")
}

/// Notes that the vault is served at `address`. That it cannot be noted stops no server: it may have no directory to write to.
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

/// The URL at which the vault was served last from this data directory.
pub(crate) fn last(settings: &Settings) -> Option<PublicUrl> {
    let mut text = String::new();
    File::open(file(settings)).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
