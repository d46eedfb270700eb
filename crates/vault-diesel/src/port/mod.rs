//! The ports, for both databases. A method runs one transaction of [`crate::transaction`].

mod key;
mod maintenance;
mod schema_version;
mod store;

pub use store::{Store, StorePorts};

use crate::failure::Reports;
use crate::postgres::DistributionError;
use crate::transaction::{Read, Transaction};
use async_trait::async_trait;
use std::fmt;
use std::ops::Deref;
use vault_core::id::OrganizationId;
use vault_core::operation::Work;
use vault_core::port::{RowStore, StoreError};
use vault_core::time::Timestamp;

/// A store on the database `D`. Implements every port.
pub struct DieselStore<D>(pub(crate) D);

impl<D> Deref for DieselStore<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

#[async_trait]
impl<D: Database> RowStore for DieselStore<D> {
    async fn submit(&self, work: Box<dyn Work>) -> Result<Box<dyn Work>, StoreError> {
        self.operate(work).await
    }
}

impl<D> fmt::Debug for DieselStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DieselStore").finish_non_exhaustive()
    }
}

/// A database that runs transactions.
pub(crate) trait Database: Send + Sync + 'static {
    /// Runs a transaction that writes.
    fn run<T: Transaction>(&self, transaction: T) -> impl Future<Output = Result<T::Outcome, StoreError>> + Send;

    /// Like `run`, for a transaction that may take long.
    fn run_patiently<T: Transaction>(
        &self,
        transaction: T,
    ) -> impl Future<Output = Result<T::Outcome, StoreError>> + Send {
        self.run(transaction)
    }

    /// Runs a transaction that reads one snapshot, for an organization or for the instance.
    fn answer<Q: Read>(
        &self,
        organization: Option<OrganizationId>,
        query: Q,
    ) -> impl Future<Output = Result<Q::Outcome, StoreError>> + Send;

    /// Runs an operation.
    fn operate(&self, work: Box<dyn Work>) -> impl Future<Output = Result<Box<dyn Work>, StoreError>> + Send;

    /// Checks that the database responds. Returns the difference of a server's clock to `now`, in milliseconds.
    fn measure(&self, now: Timestamp) -> impl Future<Output = Result<Option<i64>, StoreError>> + Send;

    /// Distributes new tables over the nodes of a database that is distributed.
    fn spread_new_tables(&self) -> impl Future<Output = Result<(), DistributionError>> + Send;

    /// Returns the reports about the store.
    fn reports(&self) -> &Reports;
}
