//! Mark of an unfinished first run: only while it exists may keys without a database be used for a new vault.

use crate::database::{Database, exists, with_suffix};
use crate::error::Error;
use crate::root_key::RootKey;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Mark of a first run: an empty file with the name of the embedded database, or of the root key that is created with a
/// vault on PostgreSQL, and the suffix `.first-run`.
pub(crate) struct FirstRun {
    mark: Option<PathBuf>,
}

impl FirstRun {
    pub(crate) fn of(root: &RootKey, database: &Database) -> Self {
        Self { mark: database.file().or(root.own_file()).map(|path| with_suffix(path, ".first-run")) }
    }

    /// Returns whether a first run was interrupted.
    pub(crate) fn was_interrupted(&self) -> Result<bool, Error> {
        self.mark.as_deref().map_or(Ok(false), exists)
    }

    /// Creates the mark, which is synced to the disk when this returns.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.mark.as_deref().map_or(Ok(()), |mark| leave(mark, ""))
    }

    /// Deletes the mark of a first run whose vault exists. A mark that cannot be deleted has no effect.
    pub(crate) fn end(&self) {
        if let Some(mark) = &self.mark {
            let _ = remove_file(mark);
        }
    }
}

/// Creates the file `mark`, unless it exists. It is synced to the disk when this returns.
pub(crate) fn leave(mark: &Path, content: &str) -> Result<(), Error> {
    let made = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark) {
        Ok(mut file) => {
            file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| sync_directory(mark))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|source| Error::Unwritable { path: mark.to_owned(), source })
}

fn sync_directory(file: &Path) -> io::Result<()> {
    match File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all() {
        // Some file systems cannot sync a directory, but order changes automatically.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}
