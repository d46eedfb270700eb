//! The rows on a PostgreSQL server.

use crate::row::{Common, Rows};
use crate::{FILLED_AT_ONCE, Failure, LISTED, Options, PAGE, SAVED};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};
use vault_diesel::MIGRATIONS;

/// The most connections: as many as the vault has.
const CONNECTIONS: usize = 10;

/// The most rows of a commit.
const LARGEST_COMMIT: usize = 64;

const CREDENTIALS: &str = "INSERT INTO credentials (organization_id, id, type, namespace, version, created_at, \
    updated_at, key_id, information) SELECT $1, id, 's3', namespace, 1, at, at, $5, $6 \
    FROM unnest($2::text[], $3::text[], $4::bigint[]) AS row (id, namespace, at)";
const SECRETS: &str = "INSERT INTO credential_secrets (organization_id, id, data_key, data) SELECT $1, id, $3, $4 \
    FROM unnest($2::text[]) AS row (id)";
const AUDIT: &str = "INSERT INTO audit (id, at, organization_id, actor, account_id, session_id, action, subject, \
    count, key_id, code) SELECT id, at, $1, 'account', $5, $6, 'credential.saved', subject, 1, $7, $8 \
    FROM unnest($2::text[], $3::bigint[], $4::text[]) AS row (id, at, subject)";
const LIST: &str = "SELECT id, type, namespace, version, created_at, updated_at, key_id, information FROM credentials \
    WHERE organization_id = $1 AND id < '~' ORDER BY id DESC LIMIT $2";

/// Runs a command.
pub(super) fn run(command: &str, url: &str, options: &Options) -> Result<f64, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        prepare(url).await?;
        match command {
            "save" => save(url, options.callers, options.length).await,
            "fill" => fill(url, options.rows).await,
            "list" => list(url, options.callers, options.length).await,
            _ => Err("save, fill or list?".into()),
        }
    })
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Makes the tables, if they are not there.
async fn prepare(url: &str) -> Result<(), Failure> {
    let client = connect(url).await?;
    if client.batch_execute("SELECT FROM credentials LIMIT 1").await.is_ok() {
        return Ok(());
    }
    for migration in MIGRATIONS {
        let sql = migration.sql.replace(" TEXT", " TEXT COLLATE \"C\"").replace(" BLOB", " BYTEA");
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
    rows: Arc<Mutex<Rows>>,
    common: Common,
}

impl Writer {
    async fn new(url: &str, rows: Arc<Mutex<Rows>>) -> Result<Self, Failure> {
        let client = connect(url).await?;
        let credentials = client.prepare(CREDENTIALS).await?;
        let secrets = client.prepare(SECRETS).await?;
        let audit = client.prepare(AUDIT).await?;
        Ok(Self { client, credentials, secrets, audit, rows, common: Common::new() })
    }

    /// Rows in a transaction of their own, all sent at once.
    async fn commit(&self, organization: &str, count: usize) -> Result<(), Failure> {
        let own: Vec<_> = self.rows.lock().unwrap_or_else(PoisonError::into_inner).by_ref().take(count).collect();
        let ids: Vec<_> = own.iter().map(|row| row.id.as_str()).collect();
        let namespaces: Vec<_> = own.iter().map(|row| row.namespace.as_str()).collect();
        let subjects: Vec<_> = own.iter().map(|row| row.subject.as_str()).collect();
        let at: Vec<_> = own.iter().map(|row| row.at).collect();
        let Common { key, account, session, data_key, sealed, code } = &self.common;
        let credentials: [&(dyn ToSql + Sync); 6] = [&organization, &ids, &namespaces, &at, key, sealed];
        let secrets: [&(dyn ToSql + Sync); 4] = [&organization, &ids, data_key, sealed];
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

/// Each commit holds one row of each caller, or of [`LARGEST_COMMIT`] callers; so many connections commit as that takes.
async fn save(url: &str, callers: usize, length: Duration) -> Result<f64, Failure> {
    let rows = Arc::new(Mutex::new(Rows::new()));
    let at_once = callers.clamp(1, LARGEST_COMMIT);
    let mut writers = Vec::new();
    for _ in 0..callers.div_ceil(LARGEST_COMMIT).clamp(1, CONNECTIONS) {
        writers.push(Writer::new(url, Arc::clone(&rows)).await?);
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in writers {
        tasks.spawn(async move {
            let mut saved = 0_u64;
            while started.elapsed() < length {
                writer.commit(SAVED, at_once).await?;
                saved += at_once as u64;
            }
            Ok::<_, Failure>(saved)
        });
    }
    total(tasks, started).await
}

async fn fill(url: &str, rows: u64) -> Result<f64, Failure> {
    let writer = Writer::new(url, Arc::new(Mutex::new(Rows::new()))).await?;
    let started = Instant::now();
    let mut done = 0;
    while done < rows {
        writer.commit(LISTED, usize::try_from(FILLED_AT_ONCE.min(rows))?).await?;
        done += FILLED_AT_ONCE.min(rows);
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

/// What all tasks did, a second.
async fn total(mut tasks: JoinSet<Result<u64, Failure>>, started: Instant) -> Result<f64, Failure> {
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}
