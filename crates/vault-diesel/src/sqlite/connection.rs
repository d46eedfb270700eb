//! Opens connections. Each setting that safety depends on is set and then read back.

use super::settings::{OpenError, SqliteKey};
use super::severity::classify;
use crate::failure::Severity;
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::result::Error as SqlError;
use diesel::sql_types::Text;
use diesel::{Connection as _, RunQueryDsl as _, SqliteConnection};
use std::path::PathBuf;

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The writer. It waits for the file lock in its own loop, not in SQLite's busy handler.
    Writing,
    /// A reader.
    Reading,
}

/// Path and key of the database.
#[derive(Debug)]
pub(crate) struct Source {
    pub(super) path: String,
    pub(super) key: SqliteKey,
    /// Page cache of the writer, in MiB.
    pub(super) page_cache: u32,
}

/// The first SQLite version that is safe for a write-ahead log with several connections.
const OLDEST_LIBRARY: [u32; 3] = [3, 51, 3];
/// Busy timeout of a reader, in milliseconds.
const READER_WAIT: &str = "5000";
/// Automatic checkpoints are off, because SQLite would not report that the disk failed during one. The writer runs
/// them.
const CHECKPOINT_PAGES: &str = "0";

/// Name of a setting, the value to set, and the value that reading it back must return.
type Setting<'a> = (&'static str, &'a str, &'a str);

const SETTINGS: [Setting<'static>; 12] = [
    ("journal_mode", "WAL", "wal"),
    ("synchronous", "FULL", "2"),
    ("foreign_keys", "ON", "1"),
    ("trusted_schema", "OFF", "0"),
    ("cell_size_check", "ON", "1"),
    ("secure_delete", "ON", "1"),
    ("mmap_size", "0", "0"),
    ("temp_store", "MEMORY", "2"),
    ("recursive_triggers", "OFF", "0"),
    ("wal_autocheckpoint", CHECKPOINT_PAGES, CHECKPOINT_PAGES),
    ("journal_size_limit", "67108864", "67108864"),
    ("cipher_memory_security", "OFF", "0"),
];
const WRITER_SETTINGS: [Setting<'static>; 2] = [("busy_timeout", "0", "0"), ("query_only", "OFF", "0")];
const READER_SETTINGS: [Setting<'static>; 3] =
    [("busy_timeout", READER_WAIT, READER_WAIT), ("cache_size", "-4096", "-4096"), ("query_only", "ON", "1")];

pub(crate) fn open(source: &Source, purpose: Purpose) -> Result<SqliteConnection, OpenError> {
    let mut connection = establish(source)?;
    // A negative `cache_size` is in KiB.
    let cache = (-i64::from(source.page_cache.max(1)) * 1024).to_string();
    let cache = ("cache_size", cache.as_str(), cache.as_str());
    let (own, cache) = match purpose {
        Purpose::Writing => (&WRITER_SETTINGS[..], Some(&cache)),
        Purpose::Reading => (&READER_SETTINGS[..], None),
    };
    let all = || SETTINGS.iter().chain(own).chain(cache);
    for (name, value, _) in all() {
        run(&mut connection, &format!("PRAGMA {name} = {value}"))?;
    }
    for (name, _, wanted) in all() {
        let found = ask(&mut connection, &format!("PRAGMA {name}"))?;
        if found != *wanted {
            return Err(OpenError::Setting { name, found, wanted: (*wanted).to_owned() });
        }
    }
    Ok(connection)
}

/// Opens a connection, sets only the key and verifies it. Changes nothing in the file.
pub(super) fn establish(source: &Source) -> Result<SqliteConnection, OpenError> {
    let mut connection =
        SqliteConnection::establish(&source.path).map_err(|error| OpenError::Database(Box::new(error)))?;
    // Set the busy timeout first, because connections that open concurrently would fail otherwise. Then set the key,
    // before any access to the file.
    run(&mut connection, &format!("PRAGMA busy_timeout = {READER_WAIT}; PRAGMA cipher_log = OFF"))?;
    run(&mut connection, &source.key.pragma())?;
    run(&mut connection, "PRAGMA cipher_compatibility = 4")?;
    prove_key(&mut connection, source)?;
    prove_library(&mut connection)?;
    Ok(connection)
}

fn run(connection: &mut SqliteConnection, statement: &str) -> Result<(), OpenError> {
    connection.batch_execute(statement).map_err(database)
}

fn ask(connection: &mut SqliteConnection, question: &str) -> Result<String, OpenError> {
    sql::<Text>(question).get_result(connection).map_err(database)
}

fn database(error: SqlError) -> OpenError {
    OpenError::Database(Box::new(error))
}

/// Checks that the key decrypts the first page.
fn prove_key(connection: &mut SqliteConnection, source: &Source) -> Result<(), OpenError> {
    match ask(connection, "SELECT count(*) FROM sqlite_master") {
        Err(OpenError::Database(error))
            if error.downcast_ref::<SqlError>().is_some_and(|error| classify(error) == Severity::BrokenElsewhere) =>
        {
            Err(OpenError::Key(PathBuf::from(&source.path)))
        }
        result => result.map(|_| ()),
    }
}

/// Checks that SQLite is recent enough and includes SQLCipher.
fn prove_library(connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let version = ask(connection, "SELECT sqlite_version()")?;
    let parts: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
    if parts.as_slice() < OLDEST_LIBRARY.as_slice() {
        return Err(OpenError::Library(version));
    }
    match ask(connection, "PRAGMA cipher_version") {
        Ok(cipher) if !cipher.is_empty() => Ok(()),
        _ => Err(OpenError::Library(format!("{version} without SQLCipher"))),
    }
}
