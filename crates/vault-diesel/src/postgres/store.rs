//! The store on PostgreSQL.

use super::connections::{Connections, Failed, Timeout};
use super::settings::{ConnectError, PostgresSettings};
use super::spread::DistributionError;
use super::write_queue::WriteQueue;
use crate::failure::Reports;
use crate::load::{StoreLoad, operating};
use crate::port::{Database, DieselStore};
use crate::rows::Operating;
use crate::work::{Call, Calling, Work};
use diesel_async::AsyncPgConnection;
use std::sync::Arc;
use tracing::{Instrument as _, Span};
use vault_core::id::OrganizationId;
use vault_core::operation;
use vault_core::port::{EventSink, StoreError};

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

    /// Runs a transaction that concerns rows of no single organization.
    async fn write(&self, work: &mut dyn Work<AsyncPgConnection>, span: Span) -> Result<(), StoreError> {
        let connections = &self.connections;
        let written = connections.in_time(connections.write(None, None, work, Timeout::Usual)).instrument(span);
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
}

impl Database for Postgres {
    type Connection = AsyncPgConnection;

    async fn operate(&self, work: Box<dyn operation::Work>) -> Result<Box<dyn operation::Work>, StoreError> {
        let (writes, organization) = (work.writes(), work.organization());
        let (is_one_exchange, is_long) = (work.is_one_exchange(), work.is_long());
        let span = operating(&*work);
        let mut work = Operating(work);
        match (writes, organization) {
            (true, Some(_)) => {
                return self.reports.seen(self.queue.run(work).instrument(span).await);
            }
            (true, None) if is_long => self.write_patiently(&mut work, span).await?,
            (true, None) => self.write(&mut work, span).await?,
            (false, _) if is_one_exchange => self.read_autocommit(organization, &mut work, span).await?,
            (false, _) => self.read(organization, &mut work, span).await?,
        }
        Ok(work.0)
    }

    async fn look<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        input: I,
        look: Call<AsyncPgConnection, I, T>,
    ) -> Result<T, StoreError> {
        let mut work = Calling::new(input, look);
        self.read(None, &mut work, Span::none()).await?;
        work.outcome()
    }

    async fn change<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        input: I,
        change: Call<AsyncPgConnection, I, T>,
    ) -> Result<T, StoreError> {
        let mut work = Calling::new(input, change);
        self.write_patiently(&mut work, Span::none()).await?;
        work.outcome()
    }

    async fn spread_new_tables(&self) -> Result<(), DistributionError> {
        self.spread_new().await
    }
}
