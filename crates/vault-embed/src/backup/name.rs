//! Names of backups.

use super::{BackupTarget, Error, exists};
use std::io;
use std::path::{Path, PathBuf};
use vault_core::time::Timestamp;

const BEFORE: &str = "orgvault-";
const AFTER: &str = ".backup";
const UNFINISHED: &str = ".unfinished";

/// Returns the file of a backup to `target`: the path itself, or a new file if it is a directory.
pub(super) fn place(target: BackupTarget<'_>, now: Timestamp) -> Result<PathBuf, Error> {
    let path = target.path();
    let absolute = std::path::absolute(path).map_err(|error| Error::io(path, error))?;
    // A path with a trailing slash refers to a directory. A schedule's directory may have been deleted since the
    // server's start.
    let meant = matches!(target, BackupTarget::Scheduled(_)) || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if meant && !absolute.is_dir() {
        return Err(Error::NoDirectory(path.to_owned()));
    }
    if absolute.is_dir() {
        return free(&absolute, now);
    }
    let directory = absolute.parent().unwrap_or(Path::new("/"));
    if !directory.is_dir() {
        return Err(Error::NoDirectory(directory.to_owned()));
    }
    match exists(&absolute)? {
        true => Err(Error::FileExists(absolute)),
        false => Ok(absolute),
    }
}

/// Returns the first name of this second that no file in the directory has: several backups may be created in a second.
fn free(directory: &Path, now: Timestamp) -> Result<PathBuf, Error> {
    let second = format!("{BEFORE}{}", compact(now));
    let first = directory.join(format!("{second}{AFTER}"));
    if !exists(&first)? {
        return Ok(first);
    }
    for number in 2..=9 {
        let next = directory.join(format!("{second}_{number}{AFTER}"));
        if !exists(&next)? {
            return Ok(next);
        }
    }
    Err(Error::FileExists(first))
}

/// Formats `2026-11-22T11:12:13Z` as `20261122T111213Z`.
pub(crate) fn compact(at: Timestamp) -> String {
    at.to_rfc3339().unwrap_or_default().replace(['-', ':'], "")
}

/// Returns the path to which the archive of `target` is written. It is hidden, so that patterns for backups do not
/// match it.
pub(super) fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    target.with_file_name(format!(".{name}{UNFINISHED}"))
}

/// Returns whether this is the name of a backup that was created in a directory.
pub(super) fn is_made(name: &str) -> bool {
    let time = name.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER));
    time.is_some_and(|time| {
        let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
        let time = match time.rsplit_once('_') {
            Some((time, number)) if digits(number, 1) => time,
            _ => time,
        };
        let parts = time.strip_suffix('Z').and_then(|time| time.split_once('T'));
        parts.is_some_and(|(day, second)| digits(day, 8) && digits(second, 6))
    })
}

/// Returns the name of the unfinished archive to which a file belongs: the archive itself, or the copy of the database
/// or its journal next to it.
pub(super) fn unfinished_of(name: &str) -> Option<&str> {
    let archive = COPIES.iter().find_map(|copy| name.strip_suffix(copy)).unwrap_or(name);
    let made = archive.strip_prefix('.')?.strip_suffix(UNFINISHED)?;
    is_made(made).then_some(archive)
}

/// Suffixes of the database copy next to an unfinished archive, and of its journal.
pub(super) const COPIES: [&str; 2] = [".db", ".db-journal"];

/// Returns the newest backup that was created in a directory, according to the names.
///
/// # Errors
/// The directory cannot be read.
pub fn newest_backup(directory: &Path) -> io::Result<Option<PathBuf>> {
    Ok(made_in(directory)?.pop())
}

/// Returns the backups in a directory, oldest first.
pub(super) fn made_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_made) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn backups_of_one_second_have_distinct_ordered_names() {
        let directory = tempfile::tempdir().unwrap();
        let place = || place(BackupTarget::Named(directory.path()), Timestamp::from_millis(0));
        let mut created = Vec::new();
        for _ in 0..9 {
            let path = place().unwrap();
            fs::write(&path, "").unwrap();
            created.push(path);
        }
        assert_eq!(made_in(directory.path()).unwrap(), created);
        assert_eq!(created[1].file_name().unwrap(), "orgvault-19700101T000000Z_2.backup");
        assert!(matches!(place(), Err(Error::FileExists(_))));
        for other in ["orgvault-19700101T000000Z_x.backup", "orgvault-19700101T000000Z_22.backup", "orgvault-_2.backup"]
        {
            assert!(!is_made(other), "{other}");
        }
    }
}
