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

const CREDENTIAL: &str = "INSERT INTO credentials (organization_id, id, type, namespace, version, created_at, \
    updated_at, key_id, information) VALUES ($1, $2, 's3', $3, 1, $4, $4, $5, $6)";
const SECRET: &str = "INSERT INTO credential_secrets (organization_id, id, data_key, data) VALUES ($1, $2, $3, $4)";
const AUDIT: &str = "INSERT INTO audit (id, at, organization_id, actor, account_id, session_id, action, subject, \
    count, key_id, code) VALUES ($1, $2, $3, 'account', $4, $5, 'credential.saved', $6, 1, $7, $8)";
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
    credential: Statement,
    secret: Statement,
    audit: Statement,
    rows: Arc<Mutex<Rows>>,
    common: Common,
}

impl Writer {
    async fn new(url: &str, rows: Arc<Mutex<Rows>>) -> Result<Self, Failure> {
        let client = connect(url).await?;
        let credential = client.prepare(CREDENTIAL).await?;
        let secret = client.prepare(SECRET).await?;
        let audit = client.prepare(AUDIT).await?;
        Ok(Self { client, credential, secret, audit, rows, common: Common::new() })
    }

    async fn insert(&self, organization: &str) -> Result<(), Failure> {
        let row = self.rows.lock().unwrap_or_else(PoisonError::into_inner).next().ok_or("no row")?;
        let Common { key, account, session, data_key, sealed, code } = &self.common;
        let credential: [&(dyn ToSql + Sync); 6] = [&organization, &row.id, &row.namespace, &row.at, key, sealed];
        let secret: [&(dyn ToSql + Sync); 4] = [&organization, &row.id, data_key, sealed];
        let audit: [&(dyn ToSql + Sync); 8] =
            [&row.id, &row.at, &organization, account, session, &row.subject, key, code];
        // Sent at once, without waiting for one another.
        tokio::try_join!(
            biased;
            self.client.execute(&self.credential, &credential),
            self.client.execute(&self.secret, &secret),
            self.client.execute(&self.audit, &audit),
        )?;
        Ok(())
    }

    /// One row in a transaction of its own.
    async fn save(&self) -> Result<(), Failure> {
        let begin = async { Ok::<_, Failure>(self.client.batch_execute("BEGIN").await?) };
        let commit = async { Ok::<_, Failure>(self.client.batch_execute("COMMIT").await?) };
        tokio::try_join!(biased; begin, self.insert(SAVED), commit)?;
        Ok(())
    }
}

async fn save(url: &str, callers: usize, length: Duration) -> Result<f64, Failure> {
    let rows = Arc::new(Mutex::new(Rows::new()));
    let mut writers = Vec::new();
    for _ in 0..callers.clamp(1, CONNECTIONS) {
        writers.push(Writer::new(url, Arc::clone(&rows)).await?);
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in writers {
        tasks.spawn(async move {
            let mut saved = 0_u64;
            while started.elapsed() < length {
                writer.save().await?;
                saved += 1;
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
        writer.client.batch_execute("BEGIN").await?;
        for _ in 0..FILLED_AT_ONCE.min(rows) {
            writer.insert(LISTED).await?;
        }
        writer.client.batch_execute("COMMIT").await?;
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
