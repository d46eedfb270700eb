//! The ports, for both databases.

mod key;
pub(crate) mod schema_version;
mod store;

pub use store::{Store, StorePorts};

use crate::db::OpenTx;
use crate::postgres::DistributionError;
use crate::work::Call;
use async_trait::async_trait;
use std::fmt;
use std::ops::Deref;
use vault_core::operation::Work;
use vault_core::port::{RowStore, StoreError};

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
    /// Its connections.
    type Connection: OpenTx + Send + 'static;

    /// Runs an operation.
    fn operate(&self, work: Box<dyn Work>) -> impl Future<Output = Result<Box<dyn Work>, StoreError>> + Send;

    /// Runs a function on a connection in one snapshot.
    fn look<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        input: I,
        look: Call<Self::Connection, I, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Runs a function on a connection in a transaction that may take long.
    fn change<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        input: I,
        change: Call<Self::Connection, I, T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Distributes new tables over the nodes of a database that is distributed.
    fn spread_new_tables(&self) -> impl Future<Output = Result<(), DistributionError>> + Send;
}
