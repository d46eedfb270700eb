//! Backups of an embedded vault that is in use.

pub(crate) mod archive;
mod keep;
mod name;

pub use keep::{keep_newest, newest_scheduled};
pub(crate) use name::compact;
pub use name::newest_backup;

use crate::database::{exists, with_suffix};
use crate::error::Error;
use crate::root_key::RootKey;
use crate::vault::OpenVault;
use archive::{Description, Opened};
use std::fs::{File, remove_file};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vault_core::audit::AuditAction;
use vault_core::time::Timestamp;
use vault_crypto::{DatabaseKeyFile, Keyring, LoadedRootKey, OsEntropy};
use vault_diesel::{CopyError, SqliteKey, Store, TableRows, check_file};

/// Interval at which the size of a growing file is read.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A finished backup.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Path of the file.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Time of the database's state in the backup, or shortly before.
    pub created_at: Timestamp,
    /// Numbers of rows in the backup, by table.
    pub rows: Vec<TableRows>,
}

/// Destination and origin of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupTarget<'a> {
    /// The file or directory that a user specified. In a directory, a new file is created.
    Named(&'a Path),
    /// The directory of a server's schedule, in which a new file is created. [`keep_newest`] may delete it later.
    Scheduled(&'a Path),
}

impl<'a> BackupTarget<'a> {
    const fn path(self) -> &'a Path {
        match self {
            Self::Named(path) | Self::Scheduled(path) => path,
        }
    }
}

/// Step of a backup or a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupStep {
    /// Copies the database.
    Copying,
    /// Opens and checks the copy.
    Checking,
    /// Writes the archive and reads it back.
    Packing,
    /// Unpacks the archive.
    Unpacking,
    /// Applies the state of the database in use to the restored one.
    Replaying,
}

/// Progress of a backup or a restore.
#[derive(Clone, Copy, Debug)]
pub struct BackupProgress {
    /// Current step.
    pub step: BackupStep,
    /// Number of processed bytes of this step, and their approximate total. `None` if unknown.
    pub bytes: Option<(u64, u64)>,
}

/// Creates a backup of the embedded vault while it is in use, in the file `target` or in a new file in the directory
/// `target`. It contains all rows in their state at one time after the call. Leftovers of killed backups in that
/// directory are deleted.
///
/// The file is a tar archive with a description, the database encrypted with its key, and that key wrapped by the root
/// key. It does not contain the root key. Before the file gets its final name, the copy is opened with `root_key`, all
/// pages and tables are checked, rows are counted, and the archive is read back.
///
/// # Errors
/// See [`Error`]. No file has the name of the backup.
pub async fn backup(
    vault: &OpenVault,
    root_key: RootKey,
    target: BackupTarget<'_>,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<Backup, Error> {
    let (Store::Sqlite(store), Some(file), Some(key)) = (&vault.adapter, &vault.file, &vault.database_key) else {
        return Err(Error::NotEmbedded("backed up"));
    };
    let root = root_key.load(Arc::new(OsEntropy))?;
    let now = vault.ports.environment.now();
    let scheduled = matches!(target, BackupTarget::Scheduled(_));
    let is_directory = target.path().is_dir();
    let target = name::place(target, now)?;
    if let Some(directory) = target.parent().filter(|_| is_directory) {
        keep::remove_unfinished(directory).map_err(|error| Error::io(directory, error))?;
    }
    let unfinished = Unfinished::take(&target)?;
    vault.record(AuditAction::DatabaseBackedUp).await.map_err(Error::Unrecorded)?;

    let key_file = DatabaseKeyFile::next_to(file);
    let wrapped = std::fs::read(key_file.path()).map_err(|error| Error::io(key_file.path(), error))?;
    let (store, copy_key, copy) =
        (Arc::clone(store), SqliteKey::from_bytes(key.expose_bytes()), unfinished.copy.clone());
    let size = file.metadata().map(|found| found.len()).unwrap_or_default();
    let copying = move || store.copy_to(&copy, &copy_key);
    let rows = watched(copying, &unfinished.copy, size, BackupStep::Copying, progress).await??;

    progress(BackupProgress { step: BackupStep::Checking, bytes: None });
    check(&unfinished.copy, &key_file, &wrapped, &root, &rows).await?;

    let total: u64 = rows.iter().map(|table| table.rows).sum();
    let created_at = now.to_rfc3339().unwrap_or_default();
    let description = Description::new(vault.instance.to_string(), created_at, total, scheduled);
    let seconds = u64::try_from(now.as_seconds()).unwrap_or_default();
    let size = unfinished.copy.metadata().map(|found| found.len()).unwrap_or_default();
    let (place, packed) = (unfinished.archive.clone(), target.clone());
    let packing = move || unfinished.pack(&description, &wrapped, seconds, &packed);
    let size = watched(packing, &place, size, BackupStep::Packing, progress).await??;
    Ok(Backup { path: target, size, created_at: now, rows })
}

/// Opens the copy with the wrapped key of the archive, checks it and compares its rows.
async fn check(
    copy: &Path,
    key_file: &DatabaseKeyFile,
    wrapped: &[u8],
    root: &LoadedRootKey,
    rows: &[TableRows],
) -> Result<(), Error> {
    let key = SqliteKey::from_bytes(key_file.load_from(wrapped, root)?.expose_bytes()); // handed to the database
    let file = copy.to_owned();
    let content = tokio::task::spawn_blocking(move || check_file(&file, key)).await;
    let content = content.map_err(|_| Error::Cancelled)??;
    same_rows(rows, &content.rows)?;
    let Some(instance) = &content.instance else {
        return Err(CopyError::Damaged { path: copy.to_owned(), finding: "it has no instance".to_owned() }.into());
    };
    let opened = Keyring::open(root, Arc::new(OsEntropy), instance);
    opened.map_err(|source| Error::CopyKeyring { file: copy.to_owned(), source })?;
    Ok(())
}

pub(crate) fn same_rows(expected: &[TableRows], found: &[TableRows]) -> Result<(), Error> {
    for table in expected {
        let rows = found.iter().find(|other| other.table == table.table).map_or(0, |other| other.rows);
        if rows != table.rows {
            let (table, expected) = (table.table.clone(), table.rows);
            return Err(Error::Unfaithful { table, expected, found: rows });
        }
    }
    Ok(())
}

/// Runs `work` on a separate thread, and reports the size of the file that it writes.
pub(crate) async fn watched<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    file: &Path,
    total: u64,
    step: BackupStep,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<T, Error> {
    let mut work = tokio::task::spawn_blocking(work);
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            done = &mut work => return done.map_err(|_| Error::Cancelled),
            _ = look.tick() => {
                let done = file.metadata().map(|found| found.len()).unwrap_or_default();
                progress(BackupProgress { step, bytes: Some((done.min(total), total)) });
            }
        }
    }
}

/// Files of a backup in progress, which are deleted when this is dropped.
struct Unfinished {
    archive: PathBuf,
    copy: PathBuf,
    file: File,
}

impl Unfinished {
    fn take(target: &Path) -> Result<Self, Error> {
        let archive = name::unfinished(target);
        let file = archive::take_unfinished(&archive).map_err(|error| Error::io(&archive, error))?;
        let Some(file) = file else {
            return Err(Error::Taken { target: target.to_owned(), unfinished: archive });
        };
        let unfinished = Self { copy: with_suffix(&archive, name::COPIES[0]), archive, file };
        unfinished.remove_copy(); // of a backup that was killed
        Ok(unfinished)
    }

    /// Packs the copy, reads it back, gives the archive its final name and returns its size.
    fn pack(self, description: &Description, wrapped: &[u8], seconds: u64, target: &Path) -> Result<u64, Error> {
        let failed = |error| Error::io(&self.archive, error);
        archive::write(&self.file, description, wrapped, &self.copy, seconds, &mut |_| {}).map_err(failed)?;
        let written = Opened::read(&self.archive)?;
        if written.description != *description || written.key != wrapped || !written.has(&self.copy)? {
            return Err(Error::Unfit(self.archive.clone()));
        }
        let size = self.file.metadata().map_err(failed)?.len();
        match archive::publish(&self.archive, target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::FileExists(target.to_owned())),
            published => published.map(|()| size).map_err(failed),
        }
    }

    fn remove_copy(&self) {
        for copy in name::COPIES {
            let _ = remove_file(with_suffix(&self.archive, copy)); // it may not exist
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.remove_copy();
        let _ = remove_file(&self.archive); // it has its final name
    }
}
