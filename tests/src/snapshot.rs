//! A snapshot of a directory, to check that it does not change.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mode and content of every file below a directory.
#[derive(PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Snapshot {
    /// Takes a snapshot of `directory`, which may not exist.
    pub fn of(directory: &Path) -> Self {
        let files = files(directory).into_iter();
        Self(files.map(|path| (path.clone(), (mode(&path), fs::read(&path).unwrap_or_default()))).collect())
    }

    /// Removes the files with a name in `drop`.
    pub fn without(mut self, drop: &[&str]) -> Self {
        self.0.retain(|path, _| !drop.iter().any(|name| path.file_name().is_some_and(|file| file == *name)));
        self
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(|(path, (mode, bytes))| {
            // Shows differences without printing binary content.
            let sum = bytes.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            format!("{} {mode:o} {} bytes {sum:016x}", path.display(), bytes.len())
        });
        f.debug_list().entries(lines).finish()
    }
}

/// Returns all files and empty directories below `directory`.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)),
            Ok(_) => found.push(path),
            Err(_) => {} // removed in the meantime
        }
    }
    found.sort();
    found
}

/// Returns the permission bits of `path`.
pub fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).map_or(0, |metadata| metadata.mode() & 0o7777)
}
