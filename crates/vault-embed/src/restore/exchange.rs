//! Replaces the present database with a restored one. Three files must change together: the database, its key and the
//! anchor. They are therefore prepared in a directory, whose renaming decides the restore. After a kill, the next
//! process continues.

use crate::backup::archive::sync_directory;
use crate::database::{exists, with_suffix};
use crate::error::Error;
use std::fs::{create_dir, read_link, remove_dir, remove_dir_all, remove_file, rename};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use vault_core::time::Timestamp;

/// Returns the directory in which a restore works before it is decided.
pub(super) fn staging(database: &Path) -> PathBuf {
    with_suffix(database, ".restore-unfinished")
}

/// Returns the directory whose files are to be put in place.
fn decided(database: &Path) -> PathBuf {
    with_suffix(database, ".restoring")
}

/// A link in [`staging`] to the anchor, which may be on another file system.
const ANCHOR: &str = "anchor";

/// Returns the path of the anchor that is to be put in place.
pub(super) fn new_anchor(anchor: &Path) -> PathBuf {
    with_suffix(anchor, ".restored")
}

/// Deletes the files of an undecided restore: [`staging`] and [`new_anchor`]. The caller must hold the server's lock.
pub(crate) fn discard_undecided(database: &Path) -> Result<(), Error> {
    let staging = staging(database);
    let discarded = || {
        if let Some(anchor) = unless_missing(read_link(staging.join(ANCHOR)))? {
            unless_missing(remove_file(new_anchor(&anchor)))?;
        }
        unless_missing(remove_dir_all(&staging))
    };
    discarded().map(|_| ()).map_err(|source| Error::Unwritable { path: staging.clone(), source })
}

/// Schedules [`new_anchor`], once it exists, to be put in place with the files in `staging`.
pub(super) fn stage_anchor(staging: &Path, anchor: &Path) -> io::Result<()> {
    symlink(std::path::absolute(anchor)?, staging.join(ANCHOR))
}

/// Returns whether a restore was decided but is not finished.
pub(crate) fn is_pending(database: &Path) -> Result<bool, Error> {
    exists(&decided(database))
}

/// Decides the restore: the files in [`staging`] become the vault, and the present ones do not belong to it any more.
pub(super) fn decide(database: &Path) -> Result<(), Error> {
    let (from, to) = (staging(database), decided(database));
    let done = sync_directory(&from).and_then(|()| rename(&from, &to)).and_then(|()| sync_directory(parent(database)));
    done.map_err(|source| Error::Unwritable { path: to, source })
}

/// Puts the files of a decided restore in place, and returns the directory with the previous files, if any. The caller
/// must hold the server's lock. After an interruption, it can be called again.
pub(crate) fn finish(database: &Path, now: Timestamp) -> Result<Option<PathBuf>, Error> {
    let put = put(database, now);
    put.map_err(|source| Error::Unwritable { path: database.to_owned(), source })
}

fn put(database: &Path, now: Timestamp) -> io::Result<Option<PathBuf>> {
    let decided = decided(database);
    let before = decided.join("before");
    match create_dir(&before) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let name = database.file_name().unwrap_or_default();
    let new = decided.join(name);
    // Until the new database is in place, the present one is the old one, and so is its log.
    if new.try_exists()? {
        for suffix in ["-wal", "-shm", "-journal", ""] {
            set_aside(&with_suffix(database, suffix), &before)?;
        }
        sync_directory(&before)?;
        rename(&new, database)?;
    }
    let (key, new_key) = (with_suffix(database, ".key"), with_suffix(&new, ".key"));
    if new_key.try_exists()? {
        set_aside(&key, &before)?;
        sync_directory(&before)?;
        rename(&new_key, &key)?;
    }
    sync_directory(parent(database))?;
    put_anchor(&decided.join(ANCHOR))?;
    let is_empty = before.read_dir()?.next().is_none();
    let kept = if is_empty {
        remove_dir(&before)?;
        None
    } else {
        let kept = free_name(database, now)?;
        rename(&before, &kept)?;
        Some(kept)
    };
    remove_dir(&decided)?;
    sync_directory(parent(database))?;
    Ok(kept)
}

fn put_anchor(link: &Path) -> io::Result<()> {
    let Some(anchor) = unless_missing(read_link(link))? else { return Ok(()) };
    unless_missing(rename(new_anchor(&anchor), &anchor))?;
    sync_directory(parent(&anchor))?;
    remove_file(link)
}

fn set_aside(file: &Path, before: &Path) -> io::Result<()> {
    unless_missing(rename(file, before.join(file.file_name().unwrap_or_default()))).map(|_| ())
}

fn unless_missing<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Returns an unused name next to the database.
fn free_name(database: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let time = crate::backup::compact(now);
    let mut name = with_suffix(database, &format!(".replaced-{time}"));
    let mut number = 1;
    while name.try_exists()? {
        number += 1;
        name = with_suffix(database, &format!(".replaced-{time}-{number}"));
    }
    Ok(name)
}

fn parent(database: &Path) -> &Path {
    database.parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
    const OLD: [(&str, &str); 3] = [("v.db", "old"), ("v.db-wal", "old log"), ("v.db.key", "old key")];

    fn place(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(directory.path().join(name), content).unwrap();
        }
        let database = directory.path().join("v.db");
        fs::create_dir(staging(&database)).unwrap();
        fs::write(staging(&database).join("v.db"), "new").unwrap();
        fs::write(staging(&database).join("v.db.key"), "new key").unwrap();
        let anchor = directory.path().join("anchor");
        fs::write(new_anchor(&anchor), "new anchor").unwrap();
        stage_anchor(&staging(&database), &anchor).unwrap();
        (directory, database)
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn is_new(directory: &Path, database: &Path) {
        assert_eq!(fs::read_to_string(database).unwrap(), "new");
        assert_eq!(fs::read_to_string(with_suffix(database, ".key")).unwrap(), "new key");
        let kept = "v.db.replaced-20270115T080000Z";
        assert_eq!(fs::read_to_string(directory.join("anchor")).unwrap(), "new anchor");
        assert_eq!(names(directory), ["anchor", "v.db", "v.db.key", kept]);
        for (name, content) in OLD {
            assert_eq!(fs::read_to_string(directory.join(kept).join(name)).unwrap(), content);
        }
    }

    #[test]
    fn exchange_keeps_old_files_and_installs_new_ones() {
        let (directory, database) = place(&OLD);
        assert!(!is_pending(&database).unwrap());
        decide(&database).unwrap();
        assert!(is_pending(&database).unwrap());
        assert!(finish(&database, NOW).unwrap().is_some());
        assert!(!is_pending(&database).unwrap());
        is_new(directory.path(), &database);

        let (directory, database) = place(&[]);
        decide(&database).unwrap();
        assert_eq!(finish(&database, NOW).unwrap(), None);
        assert_eq!(names(directory.path()), ["anchor", "v.db", "v.db.key"]);
    }

    /// An interruption after each rename has the same result.
    #[test]
    fn interrupted_exchange_is_continued() {
        type Step = fn(&Path, &Path);
        let steps: [Step; 9] = [
            |_, decided| fs::create_dir(decided.join("before")).unwrap(),
            |database, decided| fs::rename(with_suffix(database, "-wal"), decided.join("before/v.db-wal")).unwrap(),
            |database, decided| fs::rename(database, decided.join("before/v.db")).unwrap(),
            |database, decided| fs::rename(decided.join("v.db"), database).unwrap(),
            |database, decided| fs::rename(with_suffix(database, ".key"), decided.join("before/v.db.key")).unwrap(),
            |database, decided| fs::rename(decided.join("v.db.key"), with_suffix(database, ".key")).unwrap(),
            |database, _| {
                let anchor = database.with_file_name("anchor");
                fs::rename(new_anchor(&anchor), anchor).unwrap();
            },
            |_, decided| fs::remove_file(decided.join(ANCHOR)).unwrap(),
            |database, decided| {
                fs::rename(decided.join("before"), with_suffix(database, ".replaced-20270115T080000Z")).unwrap();
            },
        ];
        for done in 0..=steps.len() {
            let (directory, database) = place(&OLD);
            decide(&database).unwrap();
            for step in &steps[..done] {
                step(&database, &decided(&database));
            }
            finish(&database, NOW).unwrap();
            is_new(directory.path(), &database);
        }
    }
}
