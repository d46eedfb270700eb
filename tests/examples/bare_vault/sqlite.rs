//! The rows on an encrypted file.

use crate::row::{Common, Listed, Own, Rows};
use crate::seal::Keys;
use crate::service::Save;
use crate::{FILLED_AT_ONCE, Failure, LISTED, Options, PAGE, SAVED};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use std::cell::RefCell;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use vault_diesel::MIGRATIONS;

/// Rows that are committed together at most.
const LARGEST_COMMIT: usize = 1_024;

diesel::table! {
    bare_sessions (id) {
        id -> Text,
    }
}

diesel::table! {
    credentials (organization_id, id) {
        organization_id -> Text,
        id -> Text,
        #[sql_name = "type"]
        kind -> Text,
        namespace -> Text,
        version -> BigInt,
        created_at -> BigInt,
        updated_at -> BigInt,
        key_id -> Text,
        information -> Binary,
    }
}

diesel::table! {
    credential_secrets (organization_id, id) {
        organization_id -> Text,
        id -> Text,
        data_key -> Binary,
        data -> Binary,
    }
}

diesel::table! {
    audit (id) {
        id -> Text,
        at -> BigInt,
        organization_id -> Nullable<Text>,
        actor -> Text,
        account_id -> Nullable<Text>,
        session_id -> Nullable<Text>,
        action -> Text,
        subject -> Text,
        count -> BigInt,
        key_id -> Text,
        code -> Binary,
    }
}

const SETTINGS: &str = "PRAGMA busy_timeout = 5000; PRAGMA cipher_log = OFF;
    PRAGMA key = \"x'00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'\";
    PRAGMA cipher_compatibility = 4; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON; PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 1000; PRAGMA cipher_memory_security = OFF;";
const WRITER: &str = "PRAGMA cache_size = -16384;";
const READER: &str = "PRAGMA cache_size = -4096; PRAGMA query_only = ON;";

/// Runs a command.
pub(super) fn run(command: &str, path: &Path, options: &Options) -> Result<f64, Failure> {
    match command {
        "save" => {
            let rows = options.callers.max(1) as u64;
            commit(&mut writer(path)?, SAVED, rows, |_, started| started.elapsed() >= options.length)
        }
        "fill" => commit(&mut writer(path)?, LISTED, FILLED_AT_ONCE.min(options.rows), |rows, _| rows >= options.rows),
        "list" => read(path, options.callers, options.length),
        _ => Err("save, fill or list?".into()),
    }
}

fn connect(path: &Path, role: &str) -> Result<SqliteConnection, Failure> {
    let mut connection = SqliteConnection::establish(path.to_str().ok_or("the path is not text")?)?;
    connection.batch_execute(SETTINGS)?;
    connection.batch_execute(role)?;
    Ok(connection)
}

fn writer(path: &Path) -> Result<SqliteConnection, Failure> {
    let mut connection = connect(path, WRITER)?;
    if credentials::table.count().get_result::<i64>(&mut connection).is_err() {
        for migration in MIGRATIONS {
            connection.batch_execute(migration.sql)?;
        }
    }
    Ok(connection)
}

/// Commits so many rows at once until `over`. Rows a second.
fn commit(
    connection: &mut SqliteConnection,
    organization: &str,
    at_once: u64,
    over: impl Fn(u64, Instant) -> bool,
) -> Result<f64, Failure> {
    let common = Common::new();
    let sealed = Keys::new()?.sample()?;
    let mut rows = Rows::new();
    let started = Instant::now();
    let mut done = 0;
    while !over(done, started) {
        connection.immediate_transaction(|connection| {
            for _ in 0..at_once {
                insert(connection, organization, &common, &rows.next_with(sealed.clone()))?;
            }
            QueryResult::Ok(())
        })?;
        done += at_once;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

fn insert(connection: &mut SqliteConnection, organization: &str, common: &Common, row: &Own) -> QueryResult<()> {
    diesel::insert_into(credentials::table)
        .values((
            credentials::organization_id.eq(organization),
            credentials::id.eq(&row.id),
            credentials::kind.eq("s3"),
            credentials::namespace.eq(&row.namespace),
            credentials::version.eq(1),
            credentials::created_at.eq(row.at),
            credentials::updated_at.eq(row.at),
            credentials::key_id.eq(common.key),
            credentials::information.eq(&row.sealed.information),
        ))
        .execute(connection)?;
    diesel::insert_into(credential_secrets::table)
        .values((
            credential_secrets::organization_id.eq(organization),
            credential_secrets::id.eq(&row.id),
            credential_secrets::data_key.eq(&row.sealed.data_key),
            credential_secrets::data.eq(&row.sealed.data),
        ))
        .execute(connection)?;
    diesel::insert_into(audit::table)
        .values((
            audit::id.eq(&row.id),
            audit::at.eq(row.at),
            audit::organization_id.eq(organization),
            audit::actor.eq("account"),
            audit::account_id.eq(common.account),
            audit::session_id.eq(common.session),
            audit::action.eq("credential.saved"),
            audit::subject.eq(&row.subject),
            audit::count.eq(1),
            audit::key_id.eq(common.key),
            audit::code.eq(&common.code),
        ))
        .execute(connection)?;
    Ok(())
}

/// Commits the saves that wait, all of them at once, on a thread of its own.
pub(super) fn save_what_waits(path: &Path, session: &str, mut waiting: UnboundedReceiver<Save>) -> Result<(), Failure> {
    let mut connection = writer(path)?;
    connection
        .batch_execute("CREATE TABLE IF NOT EXISTS bare_sessions (id TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID")?;
    diesel::insert_or_ignore_into(bare_sessions::table)
        .values(bare_sessions::id.eq(session))
        .execute(&mut connection)?;
    let common = Common::new();
    thread::spawn(move || {
        let mut saves = Vec::new();
        while waiting.blocking_recv_many(&mut saves, LARGEST_COMMIT) > 0 {
            let saved = connection.immediate_transaction(|connection| {
                for save in &saves {
                    find_session(connection, &save.session)?;
                    insert(connection, SAVED, &common, &save.row)?;
                }
                QueryResult::Ok(())
            });
            for save in saves.drain(..) {
                // Nobody may be waiting any more.
                let _ = save.done.send(saved.is_ok());
            }
        }
    });
    Ok(())
}

fn find_session(connection: &mut SqliteConnection, session: &str) -> QueryResult<String> {
    bare_sessions::table.find(session).select(bare_sessions::id).first(connection)
}

/// A connection that reads pages.
pub(super) struct Reader(RefCell<SqliteConnection>);

impl Reader {
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        Ok(Self(RefCell::new(connect(path, READER)?)))
    }

    /// The newest page, if the session exists.
    pub(super) fn page(&self, session: &str) -> Result<Vec<Listed>, Failure> {
        let connection = &mut *self.0.try_borrow_mut()?;
        find_session(connection, session)?;
        page(connection)
    }
}

/// Reads pages on as many threads as can be busy. Pages a second.
fn read(path: &Path, callers: usize, length: Duration) -> Result<f64, Failure> {
    let threads = callers.clamp(1, thread::available_parallelism()?.get());
    let rates = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| read_alone(path, length))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(rates.iter().sum())
}

fn read_alone(path: &Path, length: Duration) -> Result<f64, Failure> {
    let mut connection = connect(path, READER)?;
    let started = Instant::now();
    let mut pages = 0_u64;
    while started.elapsed() < length {
        page(&mut connection)?;
        pages += 1;
    }
    Ok(pages as f64 / started.elapsed().as_secs_f64())
}

fn page(connection: &mut SqliteConnection) -> Result<Vec<Listed>, Failure> {
    let page: Vec<Listed> = credentials::table
        .filter(credentials::organization_id.eq(LISTED))
        .filter(credentials::id.lt("~"))
        .order(credentials::id.desc())
        .limit(PAGE as i64)
        .select((
            credentials::id,
            credentials::kind,
            credentials::namespace,
            credentials::version,
            credentials::created_at,
            credentials::updated_at,
            credentials::key_id,
            credentials::information,
        ))
        .load(connection)?;
    if page.len() != PAGE {
        return Err(format!("a page of {} rows: fill first", page.len()).into());
    }
    Ok(page)
}
