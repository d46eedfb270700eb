//! Reading and making the file.

use super::RootKeyFlaw;
use super::locate;
use super::weak::weakness;
use crate::durable;
use crate::entropy::random_key;
use crate::key::SymmetricKey;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Stat, fstat};
use rustix::process::{getegid, geteuid, getgroups};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use vault_core::port::Entropy;
use zeroize::Zeroizing;

/// Reads the key at `path`.
pub(super) fn read(path: &Path) -> Result<SymmetricKey, RootKeyFlaw> {
    let file = locate::open(path)?;
    check_access(&fstat(&file)?)?;
    let key = read_exactly(file)?;
    match weakness(&key) {
        Some(weakness) => Err(RootKeyFlaw::Weak(weakness)),
        None => Ok(key),
    }
}

fn check_access(found: &Stat) -> Result<(), RootKeyFlaw> {
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(RootKeyFlaw::NotAFile);
    }
    let we = geteuid().as_raw();
    if found.st_uid != we && found.st_uid != 0 {
        return Err(RootKeyFlaw::Owner(found.st_uid));
    }
    let mode = found.st_mode & 0o7777;
    // Root hands its file to our group (or to us alone, by an access list, whose mask shows as the group's).
    let handed_to_us = found.st_uid != we && (found.st_gid == 0 || is_our_group(found.st_gid));
    let refused = if handed_to_us { 0o037 } else { 0o077 };
    if mode & refused != 0 { Err(RootKeyFlaw::Mode(mode)) } else { Ok(()) }
}

fn is_our_group(group: u32) -> bool {
    getegid().as_raw() == group || getgroups().is_ok_and(|groups| groups.iter().any(|ours| ours.as_raw() == group))
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
