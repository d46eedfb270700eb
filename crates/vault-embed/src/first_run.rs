//! The mark of a first run that has not ended: only while it exists may keys without a database be used for a new vault.

use crate::database::{Database, exists, with_suffix};
use crate::error::OpeningError;
use crate::root_key::RootKey;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The mark of a first run: an empty file, named like the embedded database, or like the root key that is made with a
/// vault on PostgreSQL, with `.first-run` after it.
pub(crate) struct FirstRun {
    mark: Option<PathBuf>,
}

impl FirstRun {
    pub(crate) fn of(root: &RootKey, database: &Database) -> Self {
        Self { mark: database.file().or(root.own_file()).map(|path| with_suffix(path, ".first-run")) }
    }

    /// Whether a first run was interrupted.
    pub(crate) fn was_interrupted(&self) -> Result<bool, OpeningError> {
        self.mark.as_deref().map_or(Ok(false), exists)
    }

    /// Leaves the mark, which is on disk when this returns.
    pub(crate) fn begin(&self) -> Result<(), OpeningError> {
        self.mark.as_deref().map_or(Ok(()), |mark| leave(mark, ""))
    }

    /// Removes the mark of a first run whose vault exists. One that cannot be removed does no harm.
    pub(crate) fn end(&self) {
        if let Some(mark) = &self.mark {
            let _ = remove_file(mark);
        }
    }
}

/// Makes the file `mark`, unless there is one. It is on disk when this returns.
pub(crate) fn leave(mark: &Path, content: &str) -> Result<(), OpeningError> {
    let made = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark) {
        Ok(mut file) => {
            file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| sync_directory(mark))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|source| OpeningError::Unwritable { path: mark.to_owned(), source })
}

fn sync_directory(file: &Path) -> io::Result<()> {
    match File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all() {
        // Some file systems cannot sync a directory; they order changes by themselves.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}
