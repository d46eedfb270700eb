//! Consistent copies of the database file under a separate key, and checks of a database file.

use super::connection::{Purpose, Source, establish, open};
use super::settings::{OpenError, SqliteKey, SqliteSettings};
use super::severity::{classify, is_full};
use super::store::SqliteStore;
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::migration::{SchemaState, compare};
use crate::port::schema_version::applied_migrations;
use crate::rows::instance;
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::result::Error as SqlError;
use diesel::sql_types::{BigInt, Text};
use diesel::{QueryableByName, RunQueryDsl as _, SqliteConnection, sql_query};
use futures_util::FutureExt as _;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use vault_core::sealed::InstanceRecord;

/// Number of times that pages with findings are read before the findings are returned.
const PAGE_LOOKS: usize = 3;

/// Number of rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The table's name.
    pub table: String,
    /// Number of rows.
    pub rows: u64,
}

/// Error of a copy or of a check of a database file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file for the copy cannot be created.
    #[error("cannot create {}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is no space for the copy.
    #[error("no space left on device for {}", .0.display())]
    Full(PathBuf),
    /// A check of the file failed.
    #[error("the database {} is damaged: {finding}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first finding.
        finding: String,
    },
    /// A statement failed.
    #[error("cannot copy the database to {}", .path.display())]
    Database {
        /// The copy.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Contents of a database file.
#[derive(Debug)]
pub struct FileContent {
    /// Row counts by table.
    pub rows: Vec<TableRows>,
    /// Compares the schema with that of this build.
    pub schema: SchemaState,
    /// The root record, if the deployment has been initialized.
    pub instance: Option<InstanceRecord>,
}

impl SqliteStore {
    /// Copies the current state of the database to the new file `target` under `key`. Blocks the thread. Other
    /// connections read and write the database during the copy without waiting. Returns the row counts by table.
    ///
    /// # Errors
    /// The file exists or cannot be created, there is no space, or the database cannot be read. A partly written file
    /// is not removed.
    pub fn copy_to(&self, target: &Path, key: &SqliteKey) -> Result<Vec<TableRows>, CopyError> {
        // Only a connection that can write can fill an attached file.
        copy(open(self.source(), Purpose::Writing)?, target, key)
    }
}

/// Copies the database file `path` to the new file `target`, as [`SqliteStore::copy_to`] does. Leaves `path` unchanged.
/// Blocks the thread. No other process may write to `path`.
///
/// # Errors
/// As for [`SqliteStore::copy_to`], or `key` does not decrypt the file.
pub fn copy_file(path: &Path, key: SqliteKey, target: &Path, new_key: &SqliteKey) -> Result<Vec<TableRows>, CopyError> {
    copy(establish(&Source { path: text(path)?, key, page_cache: SqliteSettings::PAGE_CACHE })?, target, new_key)
}

fn copy(mut connection: SqliteConnection, target: &Path, key: &SqliteKey) -> Result<Vec<TableRows>, CopyError> {
    let text = prepare_target(target)?;
    let failed = |error: SqlError| match is_full(&error) {
        true => CopyError::Full(target.to_owned()),
        false => CopyError::Database { path: target.to_owned(), source: Box::new(error) },
    };
    connection.batch_execute("PRAGMA busy_timeout = 5000").map_err(failed)?;
    attach(&mut connection, &text, key, "copy").map_err(failed)?;
    // Count and copy in one transaction, so that the counts match the copy.
    connection.batch_execute("BEGIN").map_err(failed)?;
    let rows = count_rows(&mut connection).map_err(failed)?;
    connection.batch_execute("SELECT sqlcipher_export('copy'); COMMIT; DETACH copy").map_err(failed)?;
    Ok(rows)
}

/// Returns the path as UTF-8, which SQLite requires.
fn text(path: &Path) -> Result<String, OpenError> {
    let text = path.to_str().filter(|_| path.is_absolute());
    Ok(text.ok_or_else(|| OpenError::Path(path.to_owned()))?.to_owned())
}

/// Creates the empty file `path` with mode 0600, and returns the path as UTF-8.
fn prepare_target(path: &Path) -> Result<String, CopyError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|source| CopyError::Create { path: path.to_owned(), source })?;
    Ok(text(path)?)
}

/// Attaches a second database file to a connection under the name `schema`.
pub(super) fn attach(
    connection: &mut SqliteConnection,
    path: &str,
    key: &SqliteKey,
    schema: &str,
) -> Result<(), SqlError> {
    let path = path.replace('\'', "''");
    connection.batch_execute(&key.quoted(&format!("ATTACH DATABASE '{path}' AS {schema} KEY ")))
}

/// Returns the findings of `PRAGMA cipher_integrity_check` and `integrity_check` about the database file `path`. Blocks
/// the thread. Other connections may write to the file during the check.
///
/// # Errors
/// `key` does not decrypt the file, or a check cannot run.
pub fn check_pages(path: &Path, key: SqliteKey) -> Result<Vec<String>, CopyError> {
    let mut connection = establish(&Source { path: text(path)?, key, page_cache: SqliteSettings::PAGE_CACHE })?;
    let failed = |error: SqlError| CopyError::Damaged { path: path.to_owned(), finding: error.to_string() };
    let mut findings = Vec::new();
    // A page that was read while it was being written has no findings the next time.
    for _ in 0..PAGE_LOOKS {
        findings = sql::<Text>("PRAGMA cipher_integrity_check").load(&mut connection).map_err(failed)?;
        let others: Vec<String> = sql::<Text>("PRAGMA integrity_check").load(&mut connection).map_err(failed)?;
        findings.extend(others.into_iter().filter(|finding| finding != "ok"));
        if findings.is_empty() {
            break;
        }
    }
    Ok(findings)
}

/// Checks every page and every row of the database file `path`: pages are authentic under `key`, tables are intact, and
/// foreign keys refer to existing rows. Blocks the thread. No other process may write to the file.
///
/// # Errors
/// `key` does not decrypt the file, or [`CopyError::Damaged`].
pub fn check_file(path: &Path, key: SqliteKey) -> Result<FileContent, CopyError> {
    let mut connection = establish(&Source { path: text(path)?, key, page_cache: SqliteSettings::PAGE_CACHE })?;
    let failed = |error: SqlError| CopyError::Damaged { path: path.to_owned(), finding: error.to_string() };
    for (check, sound) in
        [("cipher_integrity_check", &[][..]), ("integrity_check", &["ok"]), ("foreign_key_check", &[])]
    {
        let findings: Vec<String> = sql::<Text>(&format!("PRAGMA {check}")).load(&mut connection).map_err(failed)?;
        if findings != sound {
            let finding = findings.into_iter().next().unwrap_or_else(|| format!("no answer from {check}"));
            return Err(CopyError::Damaged { path: path.to_owned(), finding });
        }
    }
    let rows = count_rows(&mut connection).map_err(failed)?;
    let read = async {
        let schema = compare(&applied_migrations(&connection.tx()).await?.unwrap_or_default());
        // An empty database has no tables to read, and the tables of an unreleased build are unknown.
        let instance = match schema {
            SchemaState::Empty | SchemaState::Unreleased(_) => None,
            _ => instance::read(&connection.tx()).await?,
        };
        Ok(FileContent { rows, schema, instance })
    };
    let read: Option<Result<FileContent, Failure>> = read.now_or_never();
    match read {
        Some(Ok(content)) => Ok(content),
        Some(Err(failure)) => {
            let finding = failure.into_store_error(classify).to_string();
            Err(CopyError::Damaged { path: path.to_owned(), finding })
        }
        None => Err(CopyError::Damaged { path: path.to_owned(), finding: "a read waited".to_owned() }),
    }
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

fn count_rows(connection: &mut SqliteConnection) -> Result<Vec<TableRows>, SqlError> {
    let all =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let tables: Vec<Name> = sql_query(all).load(connection)?;
    let mut counted = Vec::with_capacity(tables.len());
    for Name { name } in tables {
        let count: Count = sql_query(format!("SELECT count(*) AS rows FROM \"{name}\"")).get_result(connection)?;
        counted.push(TableRows { table: name, rows: u64::try_from(count.rows).unwrap_or_default() });
    }
    Ok(counted)
}
