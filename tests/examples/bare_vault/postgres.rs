//! The rows on a PostgreSQL server.

use crate::row::{Common, Listed, Own, Rows};
use crate::seal::Keys;
use crate::service::Save;
use crate::{FILLED_PER_COMMIT, Failure, LISTED, Options, PAGE, SAVED};
use futures_util::future::join_all;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;
use vault_diesel::MIGRATIONS;

/// Maximum number of connections, as in the vault.
const CONNECTIONS: usize = 10;

/// The most rows of a commit.
const LARGEST_COMMIT: usize = 64;

const CREDENTIALS: &str = "INSERT INTO credentials (organization_id, id, type, namespace, version, revision, \
    highest_version, created_at, updated_at, version_created_at, expires_at, vend, listed_versions, code, key_id, information) \
    SELECT $1, id, 's3', namespace, 1, 1, 1, at, at, at, 9223372036854775807, 'any', decode(repeat('00', 32), 'hex'), \
    decode(repeat('00', 32), 'hex'), $5, information \
    FROM unnest($2::uuid[], $3::text[], $4::bigint[], $6::bytea[]) AS row (id, namespace, at, information)";
const SECRETS: &str = "INSERT INTO credential_secrets (organization_id, id, data_key, data) \
    SELECT $1, id, data_key, data FROM unnest($2::uuid[], $3::bytea[], $4::bytea[]) AS row (id, data_key, data)";
const AUDIT: &str = "INSERT INTO audit (id, at, organization_id, actor, account_id, session_id, action, subject, \
    count, key_id, code) SELECT id, at, $1, 'account', $5, $6, 'credential.saved', subject, 1, $7, $8 \
    FROM unnest($2::uuid[], $3::bigint[], $4::text[]) AS row (id, at, subject)";
const SESSION: &str = "SELECT id FROM bare_sessions WHERE id = $1";
const LIST: &str = "SELECT id, type, namespace, version, created_at, updated_at, key_id, information FROM credentials \
    WHERE organization_id = $1 AND id < 'ffffffff-ffff-ffff-ffff-ffffffffffff' ORDER BY id DESC LIMIT $2";

/// Runs a command.
pub(super) fn run(command: &str, url: &str, options: &Options) -> Result<f64, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        prepare(url).await?;
        match command {
            "save" => save(url, options.callers, options.length).await,
            "fill" => fill(url, options.rows).await,
            "list" => list(url, options.callers, options.length).await,
            _ => Err("there is no such command on PostgreSQL: save, fill, list or serve".into()),
        }
    })
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Creates the tables if they do not exist.
async fn prepare(url: &str) -> Result<(), Failure> {
    let client = connect(url).await?;
    if client.batch_execute("SELECT FROM credentials LIMIT 1").await.is_ok() {
        return Ok(());
    }
    for migration in MIGRATIONS {
        let sql = migration.sql.replace(" TEXT", " TEXT COLLATE \"C\"").replace(" BLOB", " BYTEA");
        let sql = sql.replace("zeroblob(16)", "'00000000-0000-0000-0000-000000000000'");
        client.batch_execute(&sql.replace(" WITHOUT ROWID", "")).await?;
    }
    Ok(())
}

/// One connection with its statements.
struct Writer {
    client: Client,
    credentials: Statement,
    secrets: Statement,
    audit: Statement,
    common: Common,
}

impl Writer {
    async fn new(url: &str) -> Result<Self, Failure> {
        let client = connect(url).await?;
        let credentials = client.prepare(CREDENTIALS).await?;
        let secrets = client.prepare(SECRETS).await?;
        let audit = client.prepare(AUDIT).await?;
        Ok(Self { client, credentials, secrets, audit, common: Common::new() })
    }

    /// Commits the rows in one transaction, with all statements sent without waiting.
    async fn commit(&self, organization: Uuid, rows: &[&Own]) -> Result<(), Failure> {
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        let namespaces: Vec<_> = rows.iter().map(|row| row.namespace.as_str()).collect();
        let subjects: Vec<_> = rows.iter().map(|row| row.subject.as_str()).collect();
        let at: Vec<_> = rows.iter().map(|row| row.at).collect();
        let information: Vec<_> = rows.iter().map(|row| row.sealed.information.as_slice()).collect();
        let data_keys: Vec<_> = rows.iter().map(|row| row.sealed.data_key.as_slice()).collect();
        let data: Vec<_> = rows.iter().map(|row| row.sealed.data.as_slice()).collect();
        let Common { key, account, session, code } = &self.common;
        let credentials: [&(dyn ToSql + Sync); 6] = [&organization, &ids, &namespaces, &at, key, &information];
        let secrets: [&(dyn ToSql + Sync); 4] = [&organization, &ids, &data_keys, &data];
        let audit: [&(dyn ToSql + Sync); 8] = [&organization, &ids, &at, &subjects, account, session, key, code];
        tokio::try_join!(
            biased;
            self.client.batch_execute("BEGIN"),
            self.client.execute(&self.credentials, &credentials),
            self.client.execute(&self.secrets, &secrets),
            self.client.execute(&self.audit, &audit),
            self.client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }
}

/// Each commit contains one row of each caller, or of [`LARGEST_COMMIT`] callers. The number of connections follows
/// from that.
async fn save(url: &str, callers: usize, length: Duration) -> Result<f64, Failure> {
    let rows = Arc::new(Mutex::new(Rows::new()));
    let per_commit = callers.clamp(1, LARGEST_COMMIT);
    let sealed = Arc::new(Keys::new()?.sample()?);
    let mut writers = Vec::new();
    for _ in 0..callers.div_ceil(LARGEST_COMMIT).clamp(1, CONNECTIONS) {
        writers.push((Writer::new(url).await?, Arc::clone(&rows), Arc::clone(&sealed)));
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (writer, rows, sealed) in writers {
        tasks.spawn(async move {
            let mut saved = 0_u64;
            while started.elapsed() < length {
                let own = rows.lock().unwrap_or_else(PoisonError::into_inner).many(per_commit, &sealed);
                writer.commit(SAVED, &own.iter().collect::<Vec<_>>()).await?;
                saved += per_commit as u64;
            }
            Ok::<_, Failure>(saved)
        });
    }
    total(tasks, started).await
}

async fn fill(url: &str, count: u64) -> Result<f64, Failure> {
    let (writer, sealed) = (Writer::new(url).await?, Keys::new()?.sample()?);
    let mut rows = Rows::new();
    let started = Instant::now();
    let mut done = 0;
    while done < count {
        let own = rows.many(usize::try_from(FILLED_PER_COMMIT.min(count))?, &sealed);
        writer.commit(LISTED, &own.iter().collect::<Vec<_>>()).await?;
        done += FILLED_PER_COMMIT.min(count);
    }
    writer.client.batch_execute("ANALYZE credentials").await?;
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

async fn list(url: &str, callers: usize, length: Duration) -> Result<f64, Failure> {
    let mut readers = Vec::new();
    for _ in 0..callers.clamp(1, CONNECTIONS) {
        let client = connect(url).await?;
        let statement = client.prepare(LIST).await?;
        readers.push((client, statement));
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (client, statement) in readers {
        tasks.spawn(async move {
            let mut pages = 0_u64;
            while started.elapsed() < length {
                let page = client.query(&statement, &[&LISTED, &(PAGE as i64)]).await?;
                if page.len() != PAGE {
                    return Err(Failure::from(format!("a page of {} rows: fill first", page.len())));
                }
                pages += 1;
            }
            Ok(pages)
        });
    }
    total(tasks, started).await
}

/// Commits the saves that wait, up to [`LARGEST_COMMIT`] in a transaction, on as many connections as the vault has.
pub(super) async fn save_what_waits(url: &str, session: Uuid, waiting: UnboundedReceiver<Save>) -> Result<(), Failure> {
    prepare(url).await?;
    let client = connect(url).await?;
    client.batch_execute("CREATE TABLE IF NOT EXISTS bare_sessions (id UUID PRIMARY KEY)").await?;
    client.execute("INSERT INTO bare_sessions VALUES ($1) ON CONFLICT DO NOTHING", &[&session]).await?;
    let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
    for _ in 0..CONNECTIONS {
        let writer = Writer::new(url).await?;
        let find_session = writer.client.prepare(SESSION).await?;
        let waiting = Arc::clone(&waiting);
        tokio::spawn(async move {
            let mut saves = Vec::new();
            while waiting.lock().await.recv_many(&mut saves, LARGEST_COMMIT).await > 0 {
                let rows: Vec<_> = saves.iter().map(|save| &save.row).collect();
                let sessions = saves.iter().map(|save| is_session(&writer.client, &find_session, save.session));
                let (sessions, saved) = tokio::join!(biased; join_all(sessions), writer.commit(SAVED, &rows));
                for (save, found) in saves.drain(..).zip(sessions) {
                    // The caller may have been dropped.
                    let _ = save.done.send(saved.is_ok() && found);
                }
            }
        });
    }
    Ok(())
}

async fn is_session(client: &Client, statement: &Statement, session: Uuid) -> bool {
    client.query_one(statement, &[&session]).await.is_ok()
}

/// Connections that read pages, in turn.
pub(super) struct Readers {
    connections: Vec<(Client, Statement, Statement)>,
    turn: Cell<usize>,
}

impl Readers {
    /// A worker's part of the connections.
    pub(super) async fn new(url: &str, workers: usize) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS.div_ceil(workers) {
            let client = connect(url).await?;
            let (session, list) = (client.prepare(SESSION).await?, client.prepare(LIST).await?);
            connections.push((client, session, list));
        }
        Ok(Self { connections, turn: Cell::new(0) })
    }

    /// The newest page, if the session exists.
    pub(super) async fn page(&self, session: Uuid) -> Result<Vec<Listed>, Failure> {
        self.turn.set((self.turn.get() + 1) % self.connections.len());
        let (client, find_session, list) = &self.connections[self.turn.get()];
        let of: [&(dyn ToSql + Sync); 2] = [&LISTED, &(PAGE as i64)];
        let (found, page) = tokio::join!(biased; is_session(client, find_session, session), client.query(list, &of));
        let page = page?;
        if !found || page.len() != PAGE {
            return Err(format!("a page of {} rows: fill first", page.len()).into());
        }
        page.iter()
            .map(|row| {
                Ok((
                    row.try_get(0)?,
                    row.try_get(1)?,
                    row.try_get(2)?,
                    row.try_get(3)?,
                    row.try_get(4)?,
                    row.try_get(5)?,
                    row.try_get(6)?,
                    row.try_get(7)?,
                ))
            })
            .collect()
    }
}

/// Returns the sum of all tasks, per second.
async fn total(mut tasks: JoinSet<Result<u64, Failure>>, started: Instant) -> Result<f64, Failure> {
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}
