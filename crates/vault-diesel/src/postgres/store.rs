//! The store on PostgreSQL.

use super::connect::Connector;
use super::decision::{Decided, Verdict};
use super::pool::{Pooled, pool};
use super::settings::{ConnectError, PostgresSettings};
use super::severity::judge;
use crate::failure::{Failure, Reports, Severity, unavailable};
use crate::load::{StoreLoad, reading, turn, writing};
use bb8::{Pool, PooledConnection};
use diesel_async::{
    AnsiTransactionManager, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _, TransactionManager,
};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Instrument as _;
use vault_core::port::{EventSink, StoreError};
use vault_core::time::Timestamp;

/// A decision that writes.
type Decide<C, T> = for<'a> fn(&'a mut AsyncPgConnection, &'a C) -> BoxFuture<'a, Decided<T>>;
/// A read: its question, and how it is answered.
type Look<Q, T> = for<'a> fn(&'a mut AsyncPgConnection, &'a Q) -> BoxFuture<'a, Result<T, Failure>>;
type Transactions = AnsiTransactionManager;

/// How often a decision is tried that met another transaction or lost its connection.
const TRIES: usize = 4;
/// How long a decision waits for its turn.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

const BEGIN_WRITING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const WITHOUT_HASTE: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'";

/// The store on PostgreSQL. Implements every port.
///
/// Its connections belong to the Tokio runtime that it is used on: use it on one, with several threads.
pub struct PostgresStore {
    pool: Pool<Connector>,
    /// One per connection. The pool serves whoever asks at the right moment; this serves in turn.
    permits: Semaphore,
    size: usize,
    longest_wait: Duration,
    reports: Reports,
}

/// A connection in use.
struct Taken<'store> {
    pooled: PooledConnection<'store, Connector>,
    _permit: SemaphorePermit<'store>,
}

/// Whether a decision is in haste, as all are that a request waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Haste {
    Usual,
    None,
}

/// How one try failed.
struct Failed {
    failure: Failure,
    /// Whether it is certain that nothing stands, so that it may be tried again.
    certain: bool,
}

impl PostgresStore {
    /// Connects once, to prove address, credentials and version, and makes the pool.
    ///
    /// # Errors
    /// The address is malformed, the server cannot be reached or is too old, or its certificate does not fit.
    pub async fn connect(settings: PostgresSettings) -> Result<Arc<Self>, ConnectError> {
        let connector = Connector::new(&settings)?;
        let first = Pooled { connection: connector.connect().await?, lost: false };
        let size = usize::try_from(settings.connections.max(1)).unwrap_or(1);
        let permits = Semaphore::new(size);
        let pool = pool(connector, settings.connections);
        // Full already only if the pool has no room for one; then the connection is closed again.
        let _ = pool.add(first);
        let (longest_wait, reports) = (settings.longest_wait, Reports::default());
        Ok(Arc::new(Self { pool, permits, size, longest_wait, reports }))
    }

    /// Refuses whatever comes from now on. Connections close with the store.
    pub async fn close(&self) {
        self.permits.close();
    }

    /// Has damaged rows counted and logged by `events`.
    pub fn report_to(&self, events: Arc<dyn EventSink>) {
        self.reports.to(events);
    }

    /// How busy it is.
    pub fn load(&self) -> StoreLoad {
        StoreLoad {
            waiting: 0,
            in_use: self.size.saturating_sub(self.permits.available_permits()),
            idle: usize::try_from(self.pool.state().idle_connections).unwrap_or_default(),
            limit: self.size,
        }
    }

    /// What decisions told of the store.
    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Makes a decision.
    pub(super) async fn write<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + Sync,
        T: Send,
    {
        let written = self.in_time(self.try_to_write(&command, decide, Haste::Usual)).instrument(writing::<C>());
        self.reports.seen(written.await)
    }

    async fn in_time<T>(&self, decision: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        tokio::time::timeout(self.longest_wait, decision)
            .await
            .unwrap_or_else(|_| Err(unavailable("the database did not answer in time")))
    }

    /// Makes a decision that may take long.
    pub(super) async fn write_patiently<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + Sync,
        T: Send,
    {
        self.reports.seen(self.try_to_write(&command, decide, Haste::None).instrument(writing::<C>()).await)
    }

    /// Answers a question in one snapshot.
    pub(super) async fn read<Q, T>(&self, question: Q, look: Look<Q, T>) -> Result<T, StoreError>
    where
        Q: Send + Sync,
        T: Send,
    {
        self.reports.seen(self.in_time(self.try_to_read(&question, look)).instrument(reading::<Q>()).await)
    }

    async fn try_to_write<C, T>(&self, command: &C, decide: Decide<C, T>, haste: Haste) -> Result<T, StoreError> {
        let mut tries = 1;
        loop {
            let mut taken = self.take().await?;
            let pooled = &mut *taken.pooled;
            match write_on(&mut pooled.connection, command, decide, haste).await {
                Ok(outcome) => {
                    pooled.lost = false;
                    return Ok(outcome);
                }
                Err(failed) if failed.certain && tries < TRIES && settle(pooled, &failed.failure).await => {
                    tries += 1;
                }
                Err(failed) => {
                    settle(pooled, &failed.failure).await;
                    return Err(failed.failure.into_store_error(judge));
                }
            }
        }
    }

    async fn try_to_read<Q, T>(&self, question: &Q, look: Look<Q, T>) -> Result<T, StoreError> {
        let mut tries = 1;
        loop {
            let mut taken = self.take().await?;
            let pooled = &mut *taken.pooled;
            match read_on(&mut pooled.connection, question, look).await {
                Ok(answer) => {
                    pooled.lost = false;
                    return Ok(answer);
                }
                Err(failure) => {
                    if !settle(pooled, &failure).await || tries >= TRIES {
                        return Err(failure.into_store_error(judge));
                    }
                    tries += 1;
                }
            }
        }
    }

    /// A connection; lost unless it is taken back, so that a caller who goes away leaves none half-used.
    async fn take(&self) -> Result<Taken<'_>, StoreError> {
        let permit = tokio::time::timeout(LONGEST_QUEUE, turn(&self.permits, &self.reports))
            .await
            .map_err(|_| unavailable("all database connections are in use"))?
            .map_err(|_| unavailable("the database pool is closed"))?;
        let mut pooled = self.pool.get().await.map_err(|error| match error {
            bb8::RunError::User(error) => StoreError::Unavailable(Box::new(error)),
            bb8::RunError::TimedOut => unavailable("connecting to the database timed out"),
        })?;
        pooled.lost = true;
        Ok(Taken { pooled, _permit: permit })
    }

    /// How far the server's clock lies ahead of `now`, in milliseconds.
    pub(super) async fn measure(&self, now: Timestamp) -> Result<Option<i64>, StoreError> {
        let asked_at = Instant::now();
        let (sent, clock) = self.read((), |connection, ()| Box::pin(read_clock(connection))).await?;
        // The server looked at its clock half-way between question and answer.
        let elapsed = asked_at.elapsed().saturating_sub(sent.elapsed() / 2);
        let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        Ok(Some(clock.saturating_sub(now.as_millis()).saturating_sub(elapsed)))
    }
}

/// Puts a connection in order after a failure. Whether the same may be tried again.
async fn settle(pooled: &mut Pooled, failure: &Failure) -> bool {
    let severity = failure.severity(judge);
    if !severity.loses_connection() {
        pooled.lost = Transactions::rollback_transaction(&mut pooled.connection).await.is_err();
    }
    matches!(severity, Severity::Again | Severity::LaterElsewhere)
}

async fn write_on<C, T>(
    connection: &mut AsyncPgConnection,
    command: &C,
    decide: Decide<C, T>,
    haste: Haste,
) -> Result<T, Failed> {
    let nothing_stands = |error| Failed { failure: Failure::Sql(error), certain: true };
    Transactions::begin_transaction_sql(connection, BEGIN_WRITING).await.map_err(nothing_stands)?;
    if haste == Haste::None {
        connection.batch_execute(WITHOUT_HASTE).await.map_err(nothing_stands)?;
    }
    match decide(connection, command).await {
        Ok(Verdict::Refused(outcome) | Verdict::Undo(outcome)) => {
            Transactions::rollback_transaction(connection).await.map_err(nothing_stands)?;
            Ok(outcome)
        }
        Ok(verdict) => match Transactions::commit_transaction(connection).await {
            Ok(()) => Ok(verdict.into_outcome()),
            Err(error) => {
                let certain = judge(&error) == Severity::Again;
                Err(Failed { failure: Failure::Sql(error), certain })
            }
        },
        Err(failure) => Err(Failed { failure, certain: true }),
    }
}

async fn read_on<Q, T>(connection: &mut AsyncPgConnection, question: &Q, look: Look<Q, T>) -> Result<T, Failure> {
    Transactions::begin_transaction_sql(connection, BEGIN_SNAPSHOT).await?;
    let answer = look(connection, question).await?;
    Transactions::commit_transaction(connection).await?;
    Ok(answer)
}

/// When the question was sent, and the server's clock in milliseconds.
async fn read_clock(connection: &mut AsyncPgConnection) -> Result<(Instant, i64), Failure> {
    use diesel::sql_types::BigInt;
    let sent = Instant::now();
    let clock = diesel::dsl::sql::<BigInt>("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .get_result(connection)
        .await?;
    Ok((sent, clock))
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}
