//! Reads the catalogue of the embedded database and then every row of every table, in one transaction.

use super::value::AnyRow;
use super::{Table, TransferError};
use crate::sqlite::{Purpose, Source, open};
use diesel::connection::{DefaultLoadingMode, SimpleConnection as _};
use diesel::sql_types::{BigInt, Text};
use diesel::{QueryableByName, RunQueryDsl as _, SqliteConnection, sql_query};
use std::error::Error;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of rows that are read ahead of the target.
const ROWS_AHEAD: usize = 256;

/// An item that is read, in order.
pub(super) enum Read {
    /// The tables, parents before children, and the number of all rows.
    Catalogue(Vec<Table>, u64),
    Row(AnyRow),
    /// End of the rows of a table.
    End,
}

type Sent = Result<Read, TransferError>;

/// A snapshot of the embedded database. It lasts until this value is dropped.
pub(super) struct Snapshot {
    pub(super) rows: mpsc::Receiver<Sent>,
    hold: Hold,
}

/// Keeps the snapshot, and the write lock if there is one, until it is released.
pub(super) struct Hold {
    release: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Hold {
    /// Releases the database, and waits until its connection is closed.
    pub(super) async fn release(self) {
        drop(self.release);
        let _ = tokio::task::spawn_blocking(move || self.thread.join()).await; // only a panic, which has been reported
    }
}

impl Snapshot {
    /// Starts to read. If it `closes` the database, no other process or thread can write to it until the release.
    pub(super) fn take(source: Arc<Source>, closes: bool) -> std::io::Result<Self> {
        let (sender, rows) = mpsc::channel(ROWS_AHEAD);
        let (release, released) = oneshot::channel();
        let work = move || {
            if let Err(error) = read(&source, closes, &sender, released) {
                let _ = sender.blocking_send(Err(error)); // the receiver may have been dropped
            }
        };
        let thread = std::thread::Builder::new().name("vault-transfer".to_owned()).spawn(work)?;
        Ok(Self { rows, hold: Hold { release, thread } })
    }

    /// Stops reading and keeps the snapshot.
    pub(super) fn into_hold(self) -> Hold {
        self.hold
    }
}

fn read(
    source: &Source,
    closes: bool,
    sender: &mpsc::Sender<Sent>,
    released: oneshot::Receiver<()>,
) -> Result<(), TransferError> {
    let failed = |error: Box<dyn Error + Send + Sync>| TransferError::Source(error);
    // Only a connection that can write can acquire the write lock.
    let purpose = if closes { Purpose::Writing } else { Purpose::Reading };
    let mut connection = open(source, purpose).map_err(|error| failed(error.into()))?;
    let begin = if closes { "PRAGMA busy_timeout = 30000; BEGIN IMMEDIATE" } else { "BEGIN" };
    connection.batch_execute(begin).map_err(|error| failed(error.into()))?;
    if send_all(&mut connection, sender).map_err(|error| failed(error.into()))? {
        let _ = released.blocking_recv(); // returns when the sender is dropped
    }
    connection.batch_execute("ROLLBACK").map_err(|error| failed(error.into()))
}

/// Sends everything. Returns `false` if the receiver was dropped.
fn send_all(connection: &mut SqliteConnection, sender: &mpsc::Sender<Sent>) -> diesel::QueryResult<bool> {
    let tables = tables(connection)?;
    let mut total = 0;
    for table in &tables {
        total += count(connection, &table.name)?;
    }
    if sender.blocking_send(Ok(Read::Catalogue(tables.clone(), total))).is_err() {
        return Ok(false);
    }
    for table in &tables {
        for row in sql_query(table.select()).load_iter::<AnyRow, DefaultLoadingMode>(connection)? {
            if sender.blocking_send(Ok(Read::Row(row?))).is_err() {
                return Ok(false);
            }
        }
        if sender.blocking_send(Ok(Read::End)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    name: String,
    /// Position in the primary key, from 1, or 0 for other columns.
    #[diesel(sql_type = BigInt)]
    pk: i64,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

fn count(connection: &mut SqliteConnection, table: &str) -> diesel::QueryResult<u64> {
    let found: Count = sql_query(format!("SELECT count(*) AS rows FROM \"{table}\"")).get_result(connection)?;
    Ok(u64::try_from(found.rows).unwrap_or_default())
}

/// Returns all tables of the catalogue, each after the tables that it refers to.
fn tables(connection: &mut SqliteConnection) -> diesel::QueryResult<Vec<Table>> {
    let all =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let mut waiting = Vec::new();
    for Name { name } in sql_query(all).load::<Name>(connection)? {
        let columns = "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid";
        let columns: Vec<Column> = sql_query(columns).bind::<Text, _>(&name).load(connection)?;
        let mut key: Vec<&Column> = columns.iter().filter(|column| column.pk > 0).collect();
        key.sort_by_key(|column| column.pk);
        let key = key.into_iter().map(|column| column.name.clone()).collect();
        let parents = "SELECT DISTINCT \"table\" AS name FROM pragma_foreign_key_list(?)";
        let parents: Vec<Name> = sql_query(parents).bind::<Text, _>(&name).load(connection)?;
        let parents: Vec<String> =
            parents.into_iter().map(|parent| parent.name).filter(|parent| *parent != name).collect();
        let columns = columns.into_iter().map(|column| column.name).collect();
        waiting.push((Table { name, columns, key }, parents));
    }
    let mut ordered: Vec<Table> = Vec::new();
    while !waiting.is_empty() {
        let is_done = |name: &String| ordered.iter().any(|table| table.name == *name);
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, parents)| parents.iter().all(is_done));
        if ready.is_empty() {
            return Err(diesel::result::Error::QueryBuilderError("tables refer to each other in a circle".into()));
        }
        ordered.extend(ready.into_iter().map(|(table, _)| table));
        waiting = rest;
    }
    Ok(ordered)
}

/// Returns the next row of the current table, or `None` at its end.
pub(super) async fn next_row(rows: &mut mpsc::Receiver<Sent>) -> Result<Option<AnyRow>, TransferError> {
    match next(rows).await? {
        Read::Row(row) => Ok(Some(row)),
        Read::Catalogue(..) | Read::End => Ok(None),
    }
}

/// Receives the next item.
pub(super) async fn next(rows: &mut mpsc::Receiver<Sent>) -> Result<Read, TransferError> {
    rows.recv().await.unwrap_or_else(|| Err(TransferError::Source("its reader has ended".into())))
}
