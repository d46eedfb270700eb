//! The store on PostgreSQL.

use super::connections::{Connections, Decide, Failed, Look, Timeout};
use super::settings::{ConnectError, PostgresSettings};
use super::severity::classify;
use super::spread::DistributionError;
use super::write_queue::WriteQueue;
use crate::failure::{Failure, Reports, flat};
use crate::load::{StoreLoad, reading, writing};
use crate::port::{Database, DieselStore};
use crate::transaction::batch::Batch;
use crate::transaction::{Read, Transaction, read, run};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument as _;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::port::{ChangeCredential, DeleteCredential, EventSink, SaveCredential, StoreError};
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

/// Queues of commands that share transactions.
struct WriteQueues {
    saves: Arc<WriteQueue<SaveCredential>>,
    changes: Arc<WriteQueue<ChangeCredential>>,
    deletes: Arc<WriteQueue<DeleteCredential>>,
}

/// A command that shares a transaction with queued commands of its kind.
pub(crate) trait Queued: Batch {
    /// Returns the queue of this kind.
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Self>>;

    /// Returns the approximate size of the command in bytes.
    fn size(&self) -> usize {
        0
    }
}

impl Queued for SaveCredential {
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Self>> {
        &store.queues.saves
    }

    fn size(&self) -> usize {
        let metadata = self.description.metadata.as_ref().map_or(0, |metadata| metadata.blob.as_bytes().len());
        self.sealed.data.as_bytes().len() + self.sealed.information.as_bytes().len() + metadata
    }
}

impl Queued for ChangeCredential {
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Self>> {
        &store.queues.changes
    }

    fn size(&self) -> usize {
        let sealed = self.new_version().map(|version| &version.sealed);
        sealed.map_or(0, |sealed| sealed.data.as_bytes().len() + sealed.information.as_bytes().len())
    }
}

impl Queued for DeleteCredential {
    fn queue(store: &Postgres) -> &Arc<WriteQueue<Self>> {
        &store.queues.deletes
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
            saves: WriteQueue::new(&connections),
            changes: WriteQueue::new(&connections),
            deletes: WriteQueue::new(&connections),
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
        let WriteQueues { saves, changes, deletes } = &self.queues;
        self.connections.busy(saves.waiting_count() + changes.waiting_count() + deletes.waiting_count())
    }
}

impl Postgres {
    /// Records that the tables are distributed.
    pub(super) fn record_distribution(&self) {
        self.connections.record_distribution();
    }

    /// Runs a transaction that concerns rows of one organization, if it is known.
    pub(super) async fn write_for<C, T>(
        &self,
        organization: Option<OrganizationId>,
        command: C,
        decide: Decide<C, T>,
    ) -> Result<T, StoreError>
    where
        C: Send + Sync,
        T: Send,
    {
        let connections = &self.connections;
        let outcome = connections
            .in_time(connections.write(None, organization, &command, decide, Timeout::Usual))
            .instrument(writing::<C>())
            .await;
        self.reports.seen(outcome.map_err(|failed: Failed| failed.error))
    }

    /// Runs a transaction that may take long.
    pub(super) async fn write_patiently<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + Sync,
        T: Send,
    {
        let outcome =
            self.connections.write(None, None, &command, decide, Timeout::Long).instrument(writing::<C>()).await;
        self.reports.seen(outcome.map_err(|failed| failed.error))
    }

    /// Runs a query of the instance in one snapshot.
    pub(super) async fn read<Q, T>(&self, question: Q, look: Look<Q, T>) -> Result<T, StoreError>
    where
        Q: Send + Sync,
        T: Send,
    {
        self.read_for(None, question, look).await
    }

    /// Runs a query in one snapshot. Organizations that wait for a connection are served round-robin.
    pub(super) async fn read_for<Q, T>(
        &self,
        organization: Option<OrganizationId>,
        question: Q,
        look: Look<Q, T>,
    ) -> Result<T, StoreError>
    where
        Q: Send + Sync,
        T: Send,
    {
        let answer = self.connections.in_time(self.connections.read(organization, &question, look));
        self.reports.seen(answer.instrument(reading::<Q>()).await)
    }
}

impl Database for Postgres {
    async fn run<T: Transaction>(&self, transaction: T) -> Result<T::Outcome, StoreError> {
        flat(self.write_for(None, transaction, run).await, classify)
    }

    async fn run_for<T: Transaction>(
        &self,
        organization: OrganizationId,
        transaction: T,
    ) -> Result<T::Outcome, StoreError> {
        flat(self.write_for(Some(organization), transaction, run).await, classify)
    }

    async fn run_patiently<T: Transaction>(&self, transaction: T) -> Result<T::Outcome, StoreError> {
        flat(self.write_patiently(transaction, run).await, classify)
    }

    async fn write_together<A: Queued>(&self, command: Command<A>) -> Result<A::Outcome, StoreError> {
        self.reports.seen(A::queue(self).decide(command).instrument(writing::<Command<A>>()).await)
    }

    async fn answer<Q: Read>(&self, organization: Option<OrganizationId>, query: Q) -> Result<Q::Outcome, StoreError> {
        self.read_for(organization, query, read).await
    }

    /// Sends the statements without a transaction.
    async fn answer_at_once<Q: Read>(
        &self,
        organization: Option<OrganizationId>,
        query: Q,
    ) -> Result<Q::Outcome, StoreError> {
        let answer = self.connections.in_time(self.connections.read_at_once(organization, &query, read));
        self.reports.seen(answer.instrument(reading::<Q>()).await)
    }

    async fn measure(&self, now: Timestamp) -> Result<Option<i64>, StoreError> {
        let asked_at = Instant::now();
        let (sent, clock) = self.read((), |connection, ()| Box::pin(read_clock(connection))).await?;
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
async fn read_clock(connection: &mut AsyncPgConnection) -> Result<(Instant, i64), Failure> {
    use diesel::sql_types::BigInt;
    let sent = Instant::now();
    let clock = diesel::dsl::sql::<BigInt>("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .get_result(connection)
        .await?;
    Ok((sent, clock))
}
