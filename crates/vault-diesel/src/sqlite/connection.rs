//! Opening a connection: every setting that safety rests on is made and then read back.

use super::settings::{OpenError, SqliteKey};
use super::severity::judge;
use crate::failure::Severity;
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::result::Error as SqlError;
use diesel::sql_types::Text;
use diesel::{Connection as _, RunQueryDsl as _, SqliteConnection};
use std::path::PathBuf;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The writer's. Waits for the file in the writer's own loop, not in SQLite's.
    Writing,
    /// A reader's.
    Reading,
}

/// Where the database is, and its key.
#[derive(Debug)]
pub(crate) struct Source {
    pub(super) path: String,
    pub(super) key: SqliteKey,
    /// How many MiB of pages the writer keeps.
    pub(super) page_cache: u32,
}

/// The first version that is safe for a write-ahead log with several connections.
const OLDEST_LIBRARY: [u32; 3] = [3, 51, 3];
/// How long a reader waits for a lock, in milliseconds.
const READER_WAIT: &str = "5000";
/// SQLite itself moves nothing from the log to the file, since it would not say that the disk failed: the writer does.
const CHECKPOINT_PAGES: &str = "0";

/// A setting: its name, the value to give it and the value it must then have.
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

/// Opens a connection.
pub(crate) fn open(source: &Source, purpose: Purpose) -> Result<SqliteConnection, OpenError> {
    let mut connection = establish(source)?;
    // A negative size is one in KiB.
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

/// Opens a connection without any setting but the key, which is proven: one that changes nothing in the file.
pub(super) fn establish(source: &Source) -> Result<SqliteConnection, OpenError> {
    let mut connection =
        SqliteConnection::establish(&source.path).map_err(|error| OpenError::Database(Box::new(error)))?;
    // Waiting first: connections that open side by side would refuse each other. Then the key, before
    // anything touches the file.
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

/// The first page opens under the key.
fn prove_key(connection: &mut SqliteConnection, source: &Source) -> Result<(), OpenError> {
    match ask(connection, "SELECT count(*) FROM sqlite_master") {
        Err(OpenError::Database(error))
            if error.downcast_ref::<SqlError>().is_some_and(|error| judge(error) == Severity::BrokenElsewhere) =>
        {
            Err(OpenError::Key(PathBuf::from(&source.path)))
        }
        result => result.map(|_| ()),
    }
}

/// SQLite is new enough, and it is SQLCipher.
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
