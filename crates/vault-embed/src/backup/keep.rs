//! Directories with backups.

use super::archive::{Opened, sync_directory, take_unfinished};
use super::name::{COPIES, made_in, unfinished_of};
use crate::database::with_suffix;
use std::collections::BTreeSet;
use std::fs::remove_file;
use std::io;
use std::path::{Path, PathBuf};
use vault_core::id::InstanceId;

/// Deletes all but the `keep` newest backups in `directory` that the schedule of a server of the vault `instance`
/// created, and returns the deleted ones. Other files are kept, including backups of other vaults and manual backups.
///
/// # Errors
/// The directory cannot be read, or a file cannot be deleted.
pub fn keep_newest(directory: &Path, instance: InstanceId, keep: usize) -> io::Result<Vec<PathBuf>> {
    let mut older = scheduled(directory, instance)?;
    older.truncate(older.len().saturating_sub(keep));
    for old in &older {
        remove_file(old)?;
    }
    sync_directory(directory)?;
    Ok(older)
}

/// Returns the newest backup in `directory` that the schedule of a server of the vault `instance` created.
///
/// # Errors
/// The directory cannot be read.
pub fn newest_scheduled(directory: &Path, instance: InstanceId) -> io::Result<Option<PathBuf>> {
    Ok(scheduled(directory, instance)?.pop())
}

/// Returns the backups of a schedule, oldest first. Skips files that cannot be read.
fn scheduled(directory: &Path, instance: InstanceId) -> io::Result<Vec<PathBuf>> {
    let (mut found, instance) = (made_in(directory)?, instance.to_string());
    found.retain(|path| {
        Opened::read(path).is_ok_and(|opened| opened.description.scheduled && opened.description.instance == instance)
    });
    Ok(found)
}

/// Deletes leftovers of killed backups in `directory`: archives that no process writes, and database copies without an
/// archive.
pub(super) fn remove_unfinished(directory: &Path) -> io::Result<()> {
    let mut archives = BTreeSet::new();
    for entry in directory.read_dir()? {
        if let Some(archive) = entry?.file_name().to_str().and_then(unfinished_of) {
            archives.insert(directory.join(archive));
        }
    }
    for archive in archives {
        // An archive that is being written is locked. While it is locked here, no other process can start to write it.
        let Some(_held) = take_unfinished(&archive)? else { continue };
        for copy in COPIES {
            let _ = remove_file(with_suffix(&archive, copy)); // it may not exist
        }
        remove_file(&archive)?;
    }
    Ok(())
}
