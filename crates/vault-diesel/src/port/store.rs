//! A store on either database and its ports. The database is chosen when the process starts.

use super::{Database, DieselStore};
use crate::load::StoreLoad;
use crate::migration::{MigrateError, Migration, SchemaState};
use crate::postgres::{Distribution, DistributionError, PostgresStore};
use crate::sqlite::SqliteStore;
use std::sync::Arc;
use vault_core::port::{EventSink, KeyRepository, RowStore, StoreError};
use vault_core::time::Timestamp;

/// All ports of one store.
#[derive(Clone)]
pub struct StorePorts {
    /// The row of the instance.
    pub keys: Arc<dyn KeyRepository>,
    /// Operations on rows.
    pub rows: Arc<dyn RowStore>,
}

/// A store on either database.
#[derive(Clone, Debug)]
pub enum Store {
    /// The embedded database.
    Sqlite(Arc<SqliteStore>),
    /// PostgreSQL.
    Postgres(Arc<PostgresStore>),
}

impl Store {
    /// Returns the ports.
    pub fn ports(&self) -> StorePorts {
        match self {
            Self::Sqlite(store) => StorePorts::of(store),
            Self::Postgres(store) => StorePorts::of(store),
        }
    }

    /// Emits an event to `events` for each damaged row.
    pub fn report_to(&self, events: Arc<dyn EventSink>) {
        match self {
            Self::Sqlite(store) => store.report_to(events),
            Self::Postgres(store) => store.report_to(events),
        }
    }

    /// Returns the current load.
    pub fn load(&self) -> StoreLoad {
        match self {
            Self::Sqlite(store) => store.load(),
            Self::Postgres(store) => store.load(),
        }
    }

    /// Compares the schema of the database with that of this build.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        match self {
            Self::Sqlite(store) => store.schema_state().await,
            Self::Postgres(store) => store.schema_state().await,
        }
    }

    /// Applies the missing migrations and calls `progress` before each. Returns the number of applied migrations.
    ///
    /// # Errors
    /// The schema is of a newer build, or the database fails. Earlier migrations persist.
    pub async fn migrate(
        &self,
        now: Timestamp,
        progress: &mut (dyn FnMut(Migration) + Send),
    ) -> Result<usize, MigrateError> {
        match self {
            Self::Sqlite(store) => store.migrate(now, progress).await,
            Self::Postgres(store) => store.migrate(now, progress).await,
        }
    }

    /// Reads the distribution of the tables of a PostgreSQL cluster. Returns `None` if the database is not a Citus
    /// cluster.
    ///
    /// # Errors
    /// The extension cannot be used in its current state, or the database cannot be read.
    pub async fn spreading(&self) -> Result<Option<Distribution>, DistributionError> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(store) => store.spreading().await,
        }
    }

    /// Distributes the tables over the nodes of the database, in one transaction. Returns the number of moved tables.
    ///
    /// # Errors
    /// The tables cannot be distributed, or the database fails.
    pub async fn spread(&self) -> Result<usize, DistributionError> {
        match self {
            Self::Sqlite(_) => Err(DistributionError::Embedded),
            Self::Postgres(store) => store.spread().await,
        }
    }

    /// Waits until only another process can use the store again, or forever if that never happens. The caller then
    /// exits with a failure.
    pub async fn failed(&self) {
        match self {
            Self::Sqlite(store) => store.failed().await,
            Self::Postgres(_) => std::future::pending().await,
        }
    }

    /// Finishes transactions in progress and closes the database.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}

impl StorePorts {
    fn of<D: Database>(store: &Arc<DieselStore<D>>) -> Self {
        Self { keys: store.clone(), rows: store.clone() }
    }
}
