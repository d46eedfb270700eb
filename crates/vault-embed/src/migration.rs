//! Moves a vault from the embedded database to PostgreSQL.

use crate::database::{Database, Kind, exists, with_suffix};
use crate::error::Error;
use crate::first_run::leave;
use crate::opening::open;
use crate::root_key::RootKey;
use crate::vault::OpenVault;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use vault_core::audit::AuditAction;
use vault_diesel::{CopiedTable, MigrateError, PostgresSettings, Progress, Store, Transfer};

/// Maximum length of a database name in a mark, in bytes.
const LONGEST_NAME: u64 = 1_024;

/// Moves the vault from its embedded database to the empty PostgreSQL database `target`, and returns the copied tables.
///
/// Copies all rows unchanged in one transaction, reads them back and compares them, verifies that `root_key` opens the
/// vault in the target, and marks the embedded database as moved, so that it can no longer be opened. The file itself
/// is not changed. No other process can write to it during the move, because the vault must be opened with
/// [`Opening::server`](crate::Opening::server). After an interruption, it can be run again. If the target already
/// contains the same rows, they are only compared.
///
/// A `rehearsal` does the same except for the last step, while a server is running and based on its current state. It
/// leaves the target unchanged.
///
/// # Errors
/// See [`Error`]. The target is unchanged, except with [`Error::Incomplete`].
pub async fn migrate_to(
    vault: &OpenVault,
    root_key: RootKey,
    target: &Database,
    rehearsal: bool,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Vec<CopiedTable>, Error> {
    let (Store::Sqlite(store), Some(file)) = (&vault.adapter, &vault.file) else {
        return Err(Error::NotEmbedded("moved"));
    };
    let Kind::Postgres(url) = &target.0 else { return Err(Error::NotPostgres) };
    if !rehearsal && vault.lock.is_none() {
        return Err(Error::NotTheServer);
    }
    let transfer = Transfer::prepare(&PostgresSettings::new(url.clone()), &vault.instance.to_string()).await?;
    // Append it before the rows are read, so that the entry is among them. An earlier complete copy already has it.
    if !transfer.is_complete() {
        vault.record(AuditAction::DatabaseCopied).await.map_err(Error::Unrecorded)?;
    }
    let mut transferred = transfer.run(store, rehearsal, progress).await?;
    let tables = std::mem::take(&mut transferred.tables);
    let completed = match rehearsal {
        true => Ok(()),
        false => complete(vault, file, root_key, target).await,
    };
    transferred.release().await;
    completed.map(|()| tables).map_err(|error| Error::Incomplete(Box::new(error)))
}

/// Verifies that the vault can be opened in the target, and marks the file as moved.
async fn complete(vault: &OpenVault, file: &Path, root_key: RootKey, target: &Database) -> Result<(), Error> {
    let moved = open(root_key, target.clone()).without_maintenance().await?;
    // Distribute the tables like those of a new vault.
    if moved.spreading().await.map_err(MigrateError::from)?.is_some_and(|found| found.is_absent()) {
        moved.spread().await.map_err(MigrateError::from)?;
    }
    let is_same = moved.instance() == vault.instance();
    moved.close().await?;
    if !is_same {
        return Err(Error::NotFound { database: target.to_string() });
    }
    leave(&mark(file), &format!("{target}\n"))
}

fn mark(database: &Path) -> PathBuf {
    with_suffix(database, ".moved")
}

/// Refuses an embedded database that was moved.
pub(crate) fn refuse_moved(database: &Path) -> Result<(), Error> {
    let mark = mark(database);
    if !exists(&mark)? {
        return Ok(());
    }
    let mut target = String::new();
    let read = std::fs::File::open(&mark).and_then(|file| file.take(LONGEST_NAME).read_to_string(&mut target));
    let target = target.trim();
    let is_name = read.is_ok() && target.starts_with("postgres://") && !target.contains(char::is_control);
    let target = if is_name { target } else { "another database" }.to_owned();
    Err(Error::Moved { database: database.to_owned(), target, mark })
}
