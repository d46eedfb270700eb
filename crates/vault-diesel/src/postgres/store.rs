//! The store on PostgreSQL.

use super::connections::{Connections, Failed, Timeout};
use super::settings::{ConnectError, PostgresSettings};
use super::severity::classify;
use super::spread::DistributionError;
use super::write_queue::{Queued, RanAll, WriteQueue};
use crate::db::{OpenTx as _, Pending};
use crate::failure::{Failure, Reports};
use crate::load::{StoreLoad, operating, reading, writing};
use crate::port::{Database, DieselStore};
use crate::rows::Operating;
use crate::transaction::batch::{Batch, BatchOutcome};
use crate::transaction::work::{Calling, Finished as _, Reading, Work, Writing};
use crate::transaction::{End, Ended, Read, Transaction};
use diesel::result::Error as SqlError;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Instant;
use tracing::{Instrument as _, Span};
use vault_core::Command;
use vault_core::entity::OF_INSTANCE;
use vault_core::id::OrganizationId;
use vault_core::operation::{self, Access};
use vault_core::port::{ChangeCredential, EventSink, SaveCredential, StoreError};
use vault_core::time::Timestamp;

/// Store on PostgreSQL. Implements every port.
///
/// Its connections belong to the Tokio runtime that it is used on. Use it on a single, multi-threaded runtime.
pub type PostgresStore = DieselStore<Postgres>;

/// Connections to a PostgreSQL database.
#[allow(missing_debug_implementations, reason = "`DieselStore` has one")]
pub struct Postgres {
    connections: Arc<Connections>,
    queues: WriteQueues,
    reports: Arc<Reports>,
}

/// Queues of operations and commands that share transactions.
struct WriteQueues {
    operations: Arc<WriteQueue<Operating>>,
    saves: Arc<WriteQueue<Command<SaveCredential>>>,
    changes: Arc<WriteQueue<Command<ChangeCredential>>>,
}

/// A command that shares a transaction with queued commands of its kind.
pub(crate) trait QueuedCommand: Batch {
    /// Returns the queue of this kind.
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Command<Self>>>;

    /// Returns the approximate size of the command in bytes.
    fn size(&self) -> usize {
        0
    }
}

impl QueuedCommand for SaveCredential {
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Command<Self>>> {
        &store.queues.saves
    }

    fn size(&self) -> usize {
        let metadata = self.description.metadata.as_ref().map_or(0, |metadata| metadata.blob.as_bytes().len());
        self.sealed.data.as_bytes().len() + self.sealed.information.as_bytes().len() + metadata
    }
}

impl QueuedCommand for ChangeCredential {
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Command<Self>>> {
        &store.queues.changes
    }

    fn size(&self) -> usize {
        let sealed = self.new_version().map(|version| &version.sealed);
        sealed.map_or(0, |sealed| sealed.data.as_bytes().len() + sealed.information.as_bytes().len())
    }
}

impl<A: QueuedCommand> Queued for Command<A> {
    type Ran = Result<A::Outcome, Failure>;
    type Answer = A::Outcome;

    fn organization(&self) -> OrganizationId {
        self.payload.organization()
    }

    fn size(&self) -> usize {
        self.payload.size()
    }

    fn run_all<'c>(
        mut connection: &'c AsyncPgConnection,
        organization: OrganizationId,
        works: &'c mut [Self],
        _is_only: bool,
    ) -> BoxFuture<'c, Result<RanAll<Self::Ran>, Failure>> {
        Box::pin(async move {
            let BatchOutcome { answers, written } = A::decide_all(&connection.tx(), organization, works).await?;
            Ok(RanAll { each: answers, commits: written })
        })
    }

    fn answer(self, ran: Self::Ran) -> Result<A::Outcome, StoreError> {
        ran.map_err(|failure| failure.into_store_error(classify))
    }
}

impl Queued for Operating {
    type Ran = ();
    type Answer = Box<dyn operation::Work>;

    fn organization(&self) -> OrganizationId {
        self.0.organization().unwrap_or(OF_INSTANCE)
    }

    fn run_all<'c>(
        mut connection: &'c AsyncPgConnection,
        organization: OrganizationId,
        works: &'c mut [Self],
        is_only: bool,
    ) -> BoxFuture<'c, Result<RanAll<()>, Failure>> {
        Box::pin(async move {
            let pending = Pending::default();
            let collects = works.len() > 1 && organization != OF_INSTANCE;
            let mut all = RanAll { each: Vec::with_capacity(works.len()), commits: false };
            for work in works {
                let tx = connection.tx();
                match work.run_in(if collects { tx.collecting(&pending) } else { tx }).await? {
                    End::Commit => all.commits = true,
                    // Only a transaction that it does not share can be rolled back for it.
                    End::RollBack if !is_only => return Err(Failure::Sql(SqlError::RollbackTransaction)),
                    End::RollBack | End::Unchanged => {}
                }
                all.each.push(());
            }
            connection.tx().collecting(&pending).insert_all_pending().await?;
            Ok(all)
        })
    }

    fn answer(self, (): ()) -> Result<Self::Answer, StoreError> {
        Ok(self.0)
    }
}

impl PostgresStore {
    /// Opens one connection to verify address, credentials and version, and creates the pool.
    ///
    /// # Errors
    /// The URL is malformed, the server cannot be reached, is too old or has a certificate that does not verify, or its
    /// tables are distributed but Citus is not loaded.
    pub async fn connect(settings: PostgresSettings) -> Result<Arc<Self>, ConnectError> {
        let reports = Arc::new(Reports::default());
        let connections = Arc::new(Connections::open(settings, Arc::clone(&reports)).await?);
        let queues = WriteQueues {
            operations: WriteQueue::new(&connections),
            saves: WriteQueue::new(&connections),
            changes: WriteQueue::new(&connections),
        };
        Ok(Arc::new(Self(Postgres { connections, queues, reports })))
    }

    /// Rejects all later requests. Connections are closed when the store is dropped.
    pub async fn close(&self) {
        self.connections.close();
    }

    /// Emits an event to `events` for each damaged row.
    pub fn report_to(&self, events: Arc<dyn EventSink>) {
        self.reports.to(events);
    }

    /// Returns the current load.
    pub fn load(&self) -> StoreLoad {
        let WriteQueues { operations, saves, changes } = &self.queues;
        self.connections.busy(operations.waiting_count() + saves.waiting_count() + changes.waiting_count())
    }
}

impl Postgres {
    /// Records that the tables are distributed.
    pub(super) fn record_distribution(&self) {
        self.connections.record_distribution();
    }

    /// Runs a transaction that concerns rows of one organization, if it is known.
    async fn write(
        &self,
        organization: Option<OrganizationId>,
        work: &mut dyn Work<AsyncPgConnection>,
        span: Span,
    ) -> Result<(), StoreError> {
        let connections = &self.connections;
        let written = connections.in_time(connections.write(None, organization, work, Timeout::Usual)).instrument(span);
        self.reports.seen(written.await.map_err(|failed: Failed| failed.error))
    }

    /// Runs a transaction that may take long.
    async fn write_patiently(&self, work: &mut dyn Work<AsyncPgConnection>, span: Span) -> Result<(), StoreError> {
        let written = self.connections.write(None, None, work, Timeout::Long).instrument(span);
        self.reports.seen(written.await.map_err(|failed| failed.error))
    }

    /// Runs a query in one snapshot. Organizations that wait for a connection are served round-robin.
    async fn read(
        &self,
        organization: Option<OrganizationId>,
        work: &mut dyn Work<AsyncPgConnection>,
        span: Span,
    ) -> Result<(), StoreError> {
        let read = self.connections.in_time(self.connections.read(organization, work));
        self.reports.seen(read.instrument(span).await)
    }

    /// Runs a query that sends its statements in one exchange, without a transaction.
    async fn read_autocommit(
        &self,
        organization: Option<OrganizationId>,
        work: &mut dyn Work<AsyncPgConnection>,
        span: Span,
    ) -> Result<(), StoreError> {
        let read = self.connections.in_time(self.connections.read_autocommit(organization, work));
        self.reports.seen(read.instrument(span).await)
    }

    /// Runs a function on a connection in one snapshot.
    pub(super) async fn look<I: Send + Sync, T: Send>(&self, input: I, look: Call<I, T>) -> Result<T, StoreError> {
        let mut work = Calling::new(input, look);
        self.read(None, &mut work, reading::<I>()).await?;
        work.outcome(classify)
    }

    /// Runs a function on a connection in a transaction that may take long.
    pub(super) async fn change<I: Send + Sync, T: Send>(&self, input: I, change: Call<I, T>) -> Result<T, StoreError> {
        let mut work = Calling::new(input, change);
        self.write_patiently(&mut work, writing::<I>()).await?;
        work.outcome(classify)
    }
}

/// A function on a connection.
pub(super) type Call<I, T> = for<'a> fn(&'a mut AsyncPgConnection, &'a I) -> BoxFuture<'a, Ended<T>>;

impl Database for Postgres {
    async fn run<T: Transaction>(&self, transaction: T) -> Result<T::Outcome, StoreError> {
        let mut work = Writing::new(transaction);
        self.write(None, &mut work, writing::<T>()).await?;
        work.outcome(classify)
    }

    async fn run_for<T: Transaction>(
        &self,
        organization: OrganizationId,
        transaction: T,
    ) -> Result<T::Outcome, StoreError> {
        let mut work = Writing::new(transaction);
        self.write(Some(organization), &mut work, writing::<T>()).await?;
        work.outcome(classify)
    }

    async fn run_patiently<T: Transaction>(&self, transaction: T) -> Result<T::Outcome, StoreError> {
        let mut work = Writing::new(transaction);
        self.write_patiently(&mut work, writing::<T>()).await?;
        work.outcome(classify)
    }

    async fn write_together<A: QueuedCommand>(&self, command: Command<A>) -> Result<A::Outcome, StoreError> {
        self.reports.seen(A::queue(self).run(command).instrument(writing::<Command<A>>()).await)
    }

    async fn answer<Q: Read>(&self, organization: Option<OrganizationId>, query: Q) -> Result<Q::Outcome, StoreError> {
        let mut work = Reading::new(query);
        self.read(organization, &mut work, reading::<Q>()).await?;
        work.outcome(classify)
    }

    /// Sends the statements without a transaction.
    async fn answer_autocommit<Q: Read>(
        &self,
        organization: Option<OrganizationId>,
        query: Q,
    ) -> Result<Q::Outcome, StoreError> {
        let mut work = Reading::new(query);
        self.read_autocommit(organization, &mut work, reading::<Q>()).await?;
        work.outcome(classify)
    }

    async fn operate(&self, work: Box<dyn operation::Work>) -> Result<Box<dyn operation::Work>, StoreError> {
        let (access, organization, is_one_exchange) = (work.access(), work.organization(), work.is_one_exchange());
        let span = operating(&*work);
        let mut work = Operating(work);
        match (access, organization) {
            (Access::Write, Some(_)) => {
                return self.reports.seen(self.queues.operations.run(work).instrument(span).await);
            }
            (Access::Write, None) => self.write(None, &mut work, span).await?,
            (Access::Read, _) if is_one_exchange => self.read_autocommit(organization, &mut work, span).await?,
            (Access::Read, _) => self.read(organization, &mut work, span).await?,
        }
        work.outcome(classify)
    }

    async fn measure(&self, now: Timestamp) -> Result<Option<i64>, StoreError> {
        let asked_at = Instant::now();
        let (sent, clock) = self.look((), |connection, ()| Box::pin(read_clock(connection))).await?;
        // Assume that the server read its clock halfway between request and response.
        let elapsed = asked_at.elapsed().saturating_sub(sent.elapsed() / 2);
        let elapsed = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        Ok(Some(clock.saturating_sub(now.as_millis()).saturating_sub(elapsed)))
    }

    async fn spread_new_tables(&self) -> Result<(), DistributionError> {
        self.spread_new().await
    }

    fn reports(&self) -> &Reports {
        &self.reports
    }
}

/// Returns when the query was sent, and the clock of the server in milliseconds.
async fn read_clock(connection: &mut AsyncPgConnection) -> Ended<(Instant, i64)> {
    use diesel::sql_types::BigInt;
    let sent = Instant::now();
    let clock = diesel::dsl::sql::<BigInt>("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .get_result(connection)
        .await?;
    Ok(((sent, clock), End::Unchanged))
}
