//! Transactions on pooled connections, retried if that is safe.

use super::connect::Connector;
use super::nodes::Nodes;
use super::pool::{CONNECTION_WAIT, Pooled, pool};
use super::settings::{ConnectError, PostgresSettings};
use super::severity::classify;
use super::spread::is_distributed;
use crate::failure::{Failure, Reports, Severity, unavailable};
use crate::load::{StoreLoad, turn};
use crate::rows::Kept;
use crate::turns::{FairSemaphore, Permit};
use crate::work::{End, Work};
use bb8::{Pool, PooledConnection};
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, SimpleAsyncConnection as _, TransactionManager};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vault_core::id::OrganizationId;
use vault_core::port::{Event, RetryReason, StoreError};

/// A transaction or a read.
type PgWork<'w> = dyn Work<AsyncPgConnection> + 'w;
type Transactions = AnsiTransactionManager;

/// Maximum number of attempts if a transaction conflicts with another one or loses its connection.
const TRIES: usize = 4;
/// How long a transaction waits for a permit.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// On Citus, a statement that reaches several nodes can be planned only with its values.
const PLAN_WITH_VALUES: &str = "SET plan_cache_mode = 'auto'";
const BEGIN_WRITING: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const SHARED_TIMEOUT: &str = "SET LOCAL lock_timeout = '100ms'";
const LONG_TIMEOUT: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'";

/// The connection pools, and the transactions that run on them.
pub(super) struct Connections {
    pool: Pool<Connector>,
    /// Pools of the nodes that store the rows of organizations, for distributed tables.
    nodes: Nodes,
    /// One permit per connection. The pool itself does not schedule callers; the permits serve organizations
    /// round-robin.
    turns: FairSemaphore,
    size: usize,
    longest_wait: Duration,
    reports: Arc<Reports>,
    /// Whether the tables are distributed by organization.
    spread: AtomicBool,
}

/// A connection in use. It counts as lost until the transaction ends, so a caller that is cancelled returns no
/// half-used connection to the pool.
pub(super) struct Taken {
    pooled: PooledConnection<'static, Connector>,
    _turn: Permit,
}

impl Taken {
    /// Returns the connection unused.
    pub(super) fn give_back(mut self) {
        self.pooled.lost = false;
    }
}

/// Limits on the statements of a transaction and on its waits for locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Timeout {
    /// The limits of the connection, for transactions that a request waits for.
    Usual,
    /// A short lock timeout, for transactions that several organizations share. After a timeout, each organization runs
    /// separately.
    Shared,
    /// Long limits, for transactions that no request waits for.
    Long,
}

/// Failure of an attempt.
pub(super) struct Failed {
    pub(super) error: StoreError,
    /// Whether it is certain that nothing is committed.
    pub(super) certain: bool,
    /// Whether the transaction itself caused the failure, rather than the database or its state.
    pub(super) own: bool,
}

impl From<StoreError> for Failed {
    /// For failures before the transaction starts.
    fn from(error: StoreError) -> Self {
        Self { error, certain: true, own: false }
    }
}

/// Failure of a transaction.
struct Broken {
    failure: Failure,
    /// Whether it is certain that nothing is committed, so that a retry is safe.
    certain: bool,
}

impl Connections {
    /// Opens one connection to verify address, credentials and version, and creates the pool.
    pub(super) async fn open(settings: PostgresSettings, reports: Arc<Reports>) -> Result<Self, ConnectError> {
        let connector = Connector::new(&settings)?;
        let mut first = Pooled::new(connector.connect().await?);
        let spread = AtomicBool::new(is_distributed(&mut first.connection).await?);
        let size = usize::try_from(settings.connections.max(1)).unwrap_or(1);
        let turns = FairSemaphore::new(size);
        let nodes = Nodes::new(connector.clone(), settings.connections);
        let pool = pool(connector, settings.connections, CONNECTION_WAIT);
        // `add` fails only if the pool is full. The connection is then closed.
        let _ = pool.add(first);
        Ok(Self { pool, nodes, turns, size, longest_wait: settings.longest_wait, reports, spread })
    }

    /// Returns whether the tables are distributed by organization. A transaction of several organizations may then need
    /// a two-phase commit.
    pub(super) fn are_distributed(&self) -> bool {
        self.spread.load(Ordering::Relaxed)
    }

    /// Records that the tables are distributed.
    pub(super) fn record_distribution(&self) {
        self.spread.store(true, Ordering::Relaxed);
    }

    /// Rejects all later requests.
    pub(super) fn close(&self) {
        self.turns.close();
    }

    /// Returns the load. `waiting` is the number of queued changes.
    pub(super) fn busy(&self, waiting: usize) -> StoreLoad {
        StoreLoad {
            waiting,
            in_use: self.size.saturating_sub(self.turns.available()),
            idle: usize::try_from(self.pool.state().idle_connections).unwrap_or_default() + self.nodes.idle(),
            limit: self.size,
        }
    }

    /// Returns the time limit of a transaction or read.
    pub(super) const fn longest_wait(&self) -> Duration {
        self.longest_wait
    }

    /// Returns the outcome, or an error after the time limit.
    pub(super) async fn in_time<T, E: From<StoreError>>(
        &self,
        decision: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::time::timeout(self.longest_wait, decision)
            .await
            .unwrap_or_else(|_| Err(unavailable("the database did not respond in time").into()))
    }

    /// Runs a transaction on the connection in `taken` or on another one, with retries. `rows` is the organization
    /// whose rows the transaction concerns, if it is one.
    pub(super) async fn write(
        &self,
        mut taken: Option<Taken>,
        rows: Option<OrganizationId>,
        work: &mut PgWork<'_>,
        timeout: Timeout,
    ) -> Result<(), Failed> {
        let mut tries = 1;
        loop {
            let mut taken = match taken.take() {
                Some(taken) => taken,
                None => self.take_at(rows).await?,
            };
            let pooled = &mut *taken.pooled;
            match write_on(&mut pooled.connection, work, (timeout, &self.reports)).await {
                Ok(()) => {
                    pooled.lost = false;
                    return Ok(());
                }
                Err(failed) if failed.certain && tries < TRIES && settle(pooled, &failed.failure).await => {
                    self.emit_retry(&failed.failure);
                    tries += 1;
                }
                Err(Broken { failure, certain }) => {
                    settle(pooled, &failure).await;
                    let own = failure.severity(classify) == Severity::Broken;
                    return Err(Failed { error: failure.into_store_error(classify), certain, own });
                }
            }
        }
    }

    /// Runs a query in one snapshot, with retries.
    pub(super) async fn read(
        &self,
        organization: Option<OrganizationId>,
        work: &mut PgWork<'_>,
    ) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            let mut taken = self.take_for(organization).await?;
            let pooled = &mut *taken.pooled;
            match read_on(&mut pooled.connection, work).await {
                Ok(()) => {
                    pooled.lost = false;
                    return Ok(());
                }
                Err(failure) => {
                    if !settle(pooled, &failure).await || tries >= TRIES {
                        return Err(failure.into_store_error(classify));
                    }
                    self.emit_retry(&failure);
                    tries += 1;
                }
            }
        }
    }

    /// Runs a query that sends its statements in one exchange and needs no transaction, with retries.
    pub(super) async fn read_autocommit(
        &self,
        organization: Option<OrganizationId>,
        work: &mut PgWork<'_>,
    ) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            let mut taken = self.take_for(organization).await?;
            let pooled = &mut *taken.pooled;
            let answer = work.run(&mut pooled.connection, &Kept::default()).await;
            // There is nothing to roll back. After a database error the connection is not reused.
            pooled.lost = matches!(answer, Err(Failure::Sql(_)));
            match answer {
                Ok(_) => return Ok(()),
                Err(failure) => {
                    let again = matches!(failure.severity(classify), Severity::Again | Severity::LaterElsewhere);
                    if !again || tries >= TRIES {
                        return Err(failure.into_store_error(classify));
                    }
                    self.emit_retry(&failure);
                    tries += 1;
                }
            }
        }
    }

    /// Emits a `Retried` event for this failure.
    fn emit_retry(&self, failure: &Failure) {
        let met = failure.severity(classify) == Severity::Again;
        self.reports.report(Event::Retried(if met {
            RetryReason::SerializationFailure
        } else {
            RetryReason::ConnectionLost
        }));
    }

    /// Returns the reports about the store.
    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Waits for a permit, and returns a connection to the node that stores the rows of this organization, or to any
    /// node.
    pub(super) async fn take_at(&self, rows: Option<OrganizationId>) -> Result<Taken, StoreError> {
        self.take(None, rows).await
    }

    /// Waits for a permit of this organization, and returns a connection to the node that stores its rows.
    async fn take_for(&self, organization: Option<OrganizationId>) -> Result<Taken, StoreError> {
        self.take(organization, organization).await
    }

    async fn take(&self, who: Option<OrganizationId>, rows: Option<OrganizationId>) -> Result<Taken, StoreError> {
        let turn = tokio::time::timeout(LONGEST_QUEUE, turn(&self.turns, who, &self.reports))
            .await
            .map_err(|_| unavailable("all database connections are in use"))?
            .map_err(|_| unavailable("the database pool is closed"))?;
        let there = match rows {
            Some(organization) if self.are_distributed() => self.nodes.connection(organization, &self.pool).await,
            _ => None,
        };
        let mut pooled = match there {
            Some(pooled) => pooled,
            None => self.pool.get_owned().await.map_err(|error| match error {
                bb8::RunError::User(error) => StoreError::Unavailable(Box::new(error)),
                bb8::RunError::TimedOut => unavailable("connecting to the database timed out"),
            })?,
        };
        pooled.lost = true;
        if self.are_distributed() && !pooled.plans_with_values {
            let changed = pooled.connection.batch_execute(PLAN_WITH_VALUES).await;
            changed.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
            pooled.plans_with_values = true;
        }
        Ok(Taken { pooled, _turn: turn })
    }
}

/// Rolls back after a failure, unless the connection is lost. Returns whether a retry makes sense.
async fn settle(pooled: &mut Pooled, failure: &Failure) -> bool {
    let severity = failure.severity(classify);
    if !severity.loses_connection() {
        pooled.lost = Transactions::rollback_transaction(&mut pooled.connection).await.is_err();
    }
    matches!(severity, Severity::Again | Severity::LaterElsewhere)
}

async fn write_on(
    connection: &mut AsyncPgConnection,
    work: &mut PgWork<'_>,
    (timeout, reports): (Timeout, &Reports),
) -> Result<(), Broken> {
    let nothing_stands = |error| Broken { failure: Failure::Sql(error), certain: true };
    Transactions::begin_transaction_sql(connection, BEGIN_WRITING).await.map_err(nothing_stands)?;
    let limits = match timeout {
        Timeout::Usual => None,
        Timeout::Shared => Some(SHARED_TIMEOUT),
        Timeout::Long => Some(LONG_TIMEOUT),
    };
    if let Some(limits) = limits {
        connection.batch_execute(limits).await.map_err(nothing_stands)?;
    }
    match work.run(connection, &Kept::default()).await {
        Ok(End::Unchanged | End::RollBack) => {
            Transactions::rollback_transaction(connection).await.map_err(nothing_stands)?;
            Ok(())
        }
        Ok(End::Commit) => {
            let commit = Commit { reports, certain: false };
            match Transactions::commit_transaction(connection).await {
                Ok(()) => {
                    commit.conclude();
                    Ok(())
                }
                Err(error) => {
                    let certain = classify(&error) == Severity::Again;
                    if certain {
                        commit.conclude();
                    }
                    Err(Broken { failure: Failure::Sql(error), certain })
                }
            }
        }
        Err(failure) => Err(Broken { failure, certain: true }),
    }
}

/// A commit in progress. If it is dropped before its outcome is known, for example because the caller is cancelled, it
/// reports an indeterminate commit.
struct Commit<'a> {
    reports: &'a Reports,
    certain: bool,
}

impl Commit<'_> {
    fn conclude(mut self) {
        self.certain = true;
    }
}

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        if !self.certain {
            self.reports.report(Event::CommitIndeterminate);
        }
    }
}

async fn read_on(connection: &mut AsyncPgConnection, work: &mut PgWork<'_>) -> Result<(), Failure> {
    Transactions::begin_transaction_sql(connection, BEGIN_SNAPSHOT).await?;
    work.run(connection, &Kept::default()).await?;
    Ok(Transactions::commit_transaction(connection).await?)
}
