//! The rows on an encrypted file, through the bare driver.

use crate::row::{Common, Listed, Own, Rows, Sealed};
use crate::seal::Keys;
use crate::service::Save;
use crate::{CHANGED, FILLED_PER_COMMIT, Failure, LISTED, Options, PAGE, SAVED};
use rusqlite::{Connection, Result, Transaction, TransactionBehavior};
use std::cell::RefCell;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;
use vault_diesel::MIGRATIONS;

/// Rows that are committed together at most.
const LARGEST_COMMIT: usize = 1_024;
/// Number of credentials that are replaced, round-robin.
const REPLACED: usize = 2_000;
/// Number of previous versions of each of them.
const VERSIONS: i64 = 4;

const SETTINGS: &str = "PRAGMA busy_timeout = 5000; PRAGMA cipher_log = OFF;
    PRAGMA key = \"x'00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'\";
    PRAGMA cipher_compatibility = 4; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON; PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 1000; PRAGMA cipher_memory_security = OFF;";
const WRITER: &str = "PRAGMA cache_size = -65536;";
const READER: &str = "PRAGMA cache_size = -4096; PRAGMA query_only = ON;";

const CREDENTIAL: &str = "INSERT INTO credentials (organization_id, id, type, namespace, version, revision, \
    highest_version, created_at, updated_at, version_created_at, expires_at, vend, listed_versions, code, key_id, information) \
    VALUES (?1, ?2, 's3', ?3, 1, 1, 1, ?4, ?4, ?4, 9223372036854775807, 'any', zeroblob(32), zeroblob(32), ?5, ?6)";
const SECRET: &str = "INSERT INTO credential_secrets (organization_id, id, data_key, data) VALUES (?1, ?2, ?3, ?4)";
const AUDIT: &str = "INSERT INTO audit (id, at, organization_id, actor, account_id, session_id, action, subject, count, \
    key_id, code) VALUES (?1, ?2, ?3, 'account', ?4, ?5, ?6, ?7, 1, ?8, ?9)";
const LIST: &str = "SELECT id, type, namespace, version, created_at, updated_at, key_id, information FROM credentials \
    WHERE organization_id = ?1 AND id < x'ffffffffffffffffffffffffffffffff' ORDER BY id DESC LIMIT 100";
const SESSION: &str = "SELECT id FROM bare_sessions WHERE id = ?1";
const DESTROY: &str = "DELETE FROM credential_versions WHERE organization_id = ?1 AND id = ?2 AND version = ?3";
const KEEP: &str = "INSERT INTO credential_versions SELECT organization_id, id, version, created_at, ?3, ?3, key_id, \
    information, data_key, data, NULL, NULL, NULL FROM credentials JOIN credential_secrets USING (organization_id, id) \
    WHERE organization_id = ?1 AND id = ?2";
const NEW_SECRET: &str =
    "UPDATE credential_secrets SET data_key = ?3, data = ?4 WHERE organization_id = ?1 AND id = ?2";
const NEW_VERSION: &str = "UPDATE credentials SET version = ?3, highest_version = ?3, revision = revision + 1, \
    updated_at = ?4, version_created_at = ?4, information = ?5 WHERE organization_id = ?1 AND id = ?2";
const DELETE: &str = "DELETE FROM credentials WHERE organization_id = ?1 AND id = ?2";
const DELETE_SECRET: &str = "DELETE FROM credential_secrets WHERE organization_id = ?1 AND id = ?2";

/// Runs a command.
pub(super) fn run(command: &str, path: &Path, options: &Options) -> Result<f64, Failure> {
    let callers = options.callers.max(1);
    let over = |_, started: Instant| started.elapsed() >= options.length;
    match command {
        "save" => {
            let mut saves = Saves::new(SAVED)?;
            commit(&mut writer(path)?, callers, over, |transaction| saves.save(transaction))
        }
        "fill" => {
            let mut saves = Saves::new(LISTED)?;
            let (per_commit, enough) = (FILLED_PER_COMMIT.min(options.rows), |rows, _| rows >= options.rows);
            commit(&mut writer(path)?, usize::try_from(per_commit)?, enough, |transaction| saves.save(transaction))
        }
        "replace" => {
            let mut connection = writer(path)?;
            let mut saves = Saves::new(CHANGED)?;
            let ids = saves.many(&mut connection, REPLACED)?;
            let mut turn = 0;
            let mut replace = |transaction: &Transaction<'_>| {
                let (id, version) = (ids[turn % REPLACED], 2 + (turn / REPLACED) as i64);
                turn += 1;
                saves.replace(transaction, id, version)
            };
            let filled = (REPLACED as u64) * VERSIONS as u64;
            commit(&mut connection, REPLACED, |rows, _| rows >= filled, &mut replace)?;
            commit(&mut connection, callers, over, replace)
        }
        "delete" => {
            let mut connection = writer(path)?;
            let mut saves = Saves::new(CHANGED)?;
            let ids = saves.many(&mut connection, usize::try_from(options.rows)?)?;
            let mut place = 0;
            let over = |rows, started| over(rows, started) || rows + callers as u64 > options.rows;
            commit(&mut connection, callers, over, |transaction| {
                // Visits every index once, far from the previous one: the step is a product of two primes, neither of
                // which divides the number of rows in use.
                place = (place + 7_919 * 104_729) % ids.len();
                saves.delete(transaction, ids[place])
            })
        }
        "list" => read(path, options.callers, options.length),
        _ => Err("there is no such command: save, fill, replace, delete, list or serve".into()),
    }
}

fn connect(path: &Path, role: &str) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.execute_batch(SETTINGS)?;
    connection.execute_batch(role)?;
    Ok(connection)
}

fn writer(path: &Path) -> Result<Connection, Failure> {
    let connection = connect(path, WRITER)?;
    if connection.prepare("SELECT id FROM credentials").is_err() {
        for migration in MIGRATIONS {
            connection.execute_batch(migration.sql)?;
        }
    }
    Ok(connection)
}

/// Commits this number of changes at a time until `over`. Returns changes per second.
fn commit(
    connection: &mut Connection,
    per_commit: usize,
    over: impl Fn(u64, Instant) -> bool,
    mut change: impl FnMut(&Transaction<'_>) -> Result<()>,
) -> Result<f64, Failure> {
    let started = Instant::now();
    let mut done = 0;
    while !over(done, started) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for _ in 0..per_commit {
            change(&transaction)?;
        }
        transaction.commit()?;
        done += per_commit as u64;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

/// Changes of one organization's credentials, with seals that are all alike.
struct Saves {
    organization: Uuid,
    common: Common,
    sealed: Sealed,
    rows: Rows,
}

impl Saves {
    fn new(organization: Uuid) -> Result<Self, Failure> {
        Ok(Self { organization, common: Common::new(), sealed: Keys::new()?.sample()?, rows: Rows::new() })
    }

    fn save(&mut self, transaction: &Transaction<'_>) -> Result<()> {
        insert(transaction, self.organization, &self.common, &self.rows.next_with(self.sealed.clone()))
    }

    /// Saves `count` rows in large commits. Returns their IDs.
    fn many(&mut self, connection: &mut Connection, count: usize) -> Result<Vec<Uuid>, Failure> {
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let rows = self.rows.many(LARGEST_COMMIT.min(count - ids.len()), &self.sealed);
            let transaction = connection.transaction()?;
            for row in rows {
                insert(&transaction, self.organization, &self.common, &row)?;
                ids.push(row.id);
            }
            transaction.commit()?;
        }
        Ok(ids)
    }

    /// Stores the current version as a previous one instead of the oldest, and writes the next version.
    fn replace(&mut self, transaction: &Transaction<'_>, id: Uuid, version: i64) -> Result<()> {
        let record = self.record(id);
        let (organization, Sealed { information, data_key, data }) = (self.organization, &self.sealed);
        transaction.prepare_cached(DESTROY)?.execute((organization, id, version - 1 - VERSIONS))?;
        transaction.prepare_cached(KEEP)?.execute((organization, id, record.at))?;
        transaction.prepare_cached(NEW_SECRET)?.execute((organization, id, data_key, data))?;
        transaction.prepare_cached(NEW_VERSION)?.execute((organization, id, version, record.at, information))?;
        audit(transaction, organization, &self.common, &record, "credential.replaced")
    }

    /// Returns the audit record of a credential.
    fn record(&mut self, id: Uuid) -> Own {
        Own { subject: format!("credential:{id}"), ..self.rows.next_with(self.sealed.clone()) }
    }

    fn delete(&mut self, transaction: &Transaction<'_>, id: Uuid) -> Result<()> {
        let record = self.record(id);
        transaction.prepare_cached(DELETE)?.execute((self.organization, id))?;
        transaction.prepare_cached(DELETE_SECRET)?.execute((self.organization, id))?;
        audit(transaction, self.organization, &self.common, &record, "credential.deleted")
    }
}

fn insert(transaction: &Transaction<'_>, organization: Uuid, common: &Common, row: &Own) -> Result<()> {
    let Own { id, namespace, at, sealed, .. } = row;
    let credential = (organization, id, namespace, at, common.key, &sealed.information);
    transaction.prepare_cached(CREDENTIAL)?.execute(credential)?;
    transaction.prepare_cached(SECRET)?.execute((organization, id, &sealed.data_key, &sealed.data))?;
    audit(transaction, organization, common, row, "credential.saved")
}

fn audit(transaction: &Transaction<'_>, organization: Uuid, common: &Common, row: &Own, action: &str) -> Result<()> {
    let Common { key, account, session, code } = common;
    let record = (&row.id, row.at, organization, account, session, action, &row.subject, key, code);
    transaction.prepare_cached(AUDIT)?.execute(record)?;
    Ok(())
}

/// Commits the pending saves together, on a separate thread.
pub(super) fn save_what_waits(path: &Path, session: Uuid, mut waiting: UnboundedReceiver<Save>) -> Result<(), Failure> {
    let mut connection = writer(path)?;
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS bare_sessions (id UUID NOT NULL PRIMARY KEY) WITHOUT ROWID")?;
    connection.execute("INSERT OR IGNORE INTO bare_sessions VALUES (?1)", [session])?;
    let common = Common::new();
    thread::spawn(move || {
        let mut saves = Vec::new();
        while waiting.blocking_recv_many(&mut saves, LARGEST_COMMIT) > 0 {
            let saved = connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                for save in &saves {
                    find_session(&transaction, save.session)?;
                    insert(&transaction, SAVED, &common, &save.row)?;
                }
                transaction.commit()
            });
            for save in saves.drain(..) {
                // The caller may have been dropped.
                let _ = save.done.send(saved.is_ok());
            }
        }
    });
    Ok(())
}

fn find_session(connection: &Connection, session: Uuid) -> Result<Uuid> {
    connection.prepare_cached(SESSION)?.query_row([session], |row| row.get(0))
}

/// A connection that reads pages.
pub(super) struct Reader(RefCell<Connection>);

impl Reader {
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        Ok(Self(RefCell::new(connect(path, READER)?)))
    }

    /// The newest page, if the session exists.
    pub(super) fn page(&self, session: Uuid) -> Result<Vec<Listed>, Failure> {
        let connection = &*self.0.try_borrow()?;
        find_session(connection, session)?;
        page(connection)
    }
}

/// Reads pages on as many threads as can be busy. Pages a second.
fn read(path: &Path, callers: usize, length: Duration) -> Result<f64, Failure> {
    if !path.try_exists()? {
        return Err(format!("there is no file {}: `bare_vault fill` creates it", path.display()).into());
    }
    let threads = callers.clamp(1, thread::available_parallelism()?.get());
    let rates = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| read_alone(path, length))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(rates.iter().sum())
}

fn read_alone(path: &Path, length: Duration) -> Result<f64, Failure> {
    let connection = connect(path, READER)?;
    let started = Instant::now();
    let mut pages = 0_u64;
    while started.elapsed() < length {
        page(&connection)?;
        pages += 1;
    }
    Ok(pages as f64 / started.elapsed().as_secs_f64())
}

fn page(connection: &Connection) -> Result<Vec<Listed>, Failure> {
    let mut statement = connection.prepare_cached(LIST)?;
    let rows = statement.query_map([LISTED], |row| Listed::try_from(row))?;
    let page = rows.collect::<Result<Vec<_>, _>>()?;
    if page.len() != PAGE {
        return Err(format!("a page of {} rows: fill first", page.len()).into());
    }
    Ok(page)
}
