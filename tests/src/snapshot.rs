//! The state of a directory, for tests that nothing in it changes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Every file below a directory: its mode and its bytes.
#[derive(PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Snapshot {
    /// The state of `directory`, which need not be there.
    pub fn of(directory: &Path) -> Self {
        let files = files(directory).into_iter();
        Self(files.map(|path| (path.clone(), (mode(&path), fs::read(&path).unwrap_or_default()))).collect())
    }

    /// The same without the files whose name `drop` holds.
    pub fn without(mut self, drop: &[&str]) -> Self {
        self.0.retain(|path, _| !drop.iter().any(|name| path.file_name().is_some_and(|file| file == *name)));
        self
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(|(path, (mode, bytes))| {
            // Enough to see what differs, and no page of binary text.
            let sum = bytes.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            format!("{} {mode:o} {} bytes {sum:016x}", path.display(), bytes.len())
        });
        f.debug_list().entries(lines).finish()
    }
}

/// Everything below `directory` that is not a directory, and the empty directories.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)),
            Ok(_) => found.push(path),
            Err(_) => {} // gone meanwhile
        }
    }
    found.sort();
    found
}

/// The permission bits of `path`.
pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).map_or(0, |metadata| metadata.mode() & 0o7777)
}
