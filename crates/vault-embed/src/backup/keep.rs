//! A directory with the newest backups.

use super::{archive, name};
use std::fs::remove_file;
use std::io;
use std::path::{Path, PathBuf};

/// Removes all but the `keep` newest of the backups that were made in `directory`, and what killed ones left. Other files
/// stay. The backups that were removed.
///
/// # Errors
/// The directory cannot be read, or a file cannot be removed.
pub fn keep_newest(directory: &Path, keep: usize) -> io::Result<Vec<PathBuf>> {
    let mut older = name::made_in(directory)?;
    older.truncate(older.len().saturating_sub(keep));
    for old in &older {
        remove_file(old)?;
    }
    for entry in directory.read_dir()? {
        let path = entry?.path();
        let is_unfinished = path.file_name().and_then(|name| name.to_str()).is_some_and(name::is_unfinished);
        // One that is being written is locked.
        if is_unfinished && archive::take_unfinished(&path)?.is_some() {
            let mut copy = path.clone().into_os_string();
            copy.push(".db");
            let _ = remove_file(PathBuf::from(copy)); // there may be none
            remove_file(&path)?;
        }
    }
    archive::sync_directory(directory)?;
    Ok(older)
}
