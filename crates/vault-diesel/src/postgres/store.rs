//! The store on PostgreSQL.

use super::connections::{Connections, Failed, Timeout};
use super::settings::{ConnectError, PostgresSettings};
use super::severity::classify;
use super::spread::DistributionError;
use super::write_queue::WriteQueue;
use crate::failure::Reports;
use crate::load::{StoreLoad, operating, reading, writing};
use crate::port::{Database, DieselStore};
use crate::rows::Operating;
use crate::transaction::work::{Calling, Finished as _, Reading, Work, Writing};
use crate::transaction::{End, Ended, Read, Transaction};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Instant;
use tracing::{Instrument as _, Span};
use vault_core::id::OrganizationId;
use vault_core::operation;
use vault_core::port::{EventSink, StoreError};
use vault_core::time::Timestamp;

/// Store on PostgreSQL. Implements every port.
///
/// Its connections belong to the Tokio runtime that it is used on. Use it on a single, multi-threaded runtime.
pub type PostgresStore = DieselStore<Postgres>;

/// Connections to a PostgreSQL database.
#[allow(missing_debug_implementations, reason = "`DieselStore` has one")]
pub struct Postgres {
    connections: Arc<Connections>,
    queue: Arc<WriteQueue>,
    reports: Arc<Reports>,
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
        let queue = WriteQueue::new(&connections);
        Ok(Arc::new(Self(Postgres { connections, queue, reports })))
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
        self.connections.busy(self.queue.waiting_count())
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

    async fn run_patiently<T: Transaction>(&self, transaction: T) -> Result<T::Outcome, StoreError> {
        let mut work = Writing::new(transaction);
        self.write_patiently(&mut work, writing::<T>()).await?;
        work.outcome(classify)
    }

    async fn answer<Q: Read>(&self, organization: Option<OrganizationId>, query: Q) -> Result<Q::Outcome, StoreError> {
        let mut work = Reading::new(query);
        self.read(organization, &mut work, reading::<Q>()).await?;
        work.outcome(classify)
    }

    async fn operate(&self, work: Box<dyn operation::Work>) -> Result<Box<dyn operation::Work>, StoreError> {
        let (writes, organization, is_one_exchange) = (work.writes(), work.organization(), work.is_one_exchange());
        let span = operating(&*work);
        let mut work = Operating(work);
        match (writes, organization) {
            (true, Some(_)) => {
                return self.reports.seen(self.queue.run(work).instrument(span).await);
            }
            (true, None) => self.write(None, &mut work, span).await?,
            (false, _) if is_one_exchange => self.read_autocommit(organization, &mut work, span).await?,
            (false, _) => self.read(organization, &mut work, span).await?,
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
