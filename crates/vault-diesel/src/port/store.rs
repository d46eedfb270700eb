//! Either store, behind its ports: which one is decided when the process starts.

use super::{Database, DieselStore};
use crate::load::StoreLoad;
use crate::migration::{MigrateError, Migration, SchemaState};
use crate::postgres::{PostgresStore, SpreadError, Spreading};
use crate::sqlite::SqliteStore;
use std::sync::Arc;
use vault_core::port::{
    AccountStore, ActivationStore, AuditLog, AuditTrail, CredentialStore, EventSink, EventStore, InspectionStore,
    IntegrationStore, KeyRepository, OperatorStore, OrganizationRepository, RotationStore, StoreError,
};
use vault_core::time::Timestamp;

/// Every port of one store.
#[derive(Clone)]
pub struct StorePorts {
    /// Organizations.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Accounts, invitations, logins and sessions.
    pub accounts: Arc<dyn AccountStore>,
    /// Credentials.
    pub credentials: Arc<dyn CredentialStore>,
    /// Integrations and namespaces.
    pub integrations: Arc<dyn IntegrationStore>,
    /// Receivers of events, and what is on its way to them.
    pub receivers: Arc<dyn EventStore>,
    /// Activations: the one port that gives out sealed data.
    pub activations: Arc<dyn ActivationStore>,
    /// Wrapped keys.
    pub keys: Arc<dyn KeyRepository>,
    /// The audit trail.
    pub audit: Arc<dyn AuditLog>,
    /// Reading the audit trail.
    pub trail: Arc<dyn AuditTrail>,
    /// Reading what is stored row by row.
    pub inspection: Arc<dyn InspectionStore>,
    /// The rotation of keys.
    pub rotation: Arc<dyn RotationStore>,
    /// What operators need: organizations, keys, the audit and maintenance.
    pub operator: Arc<dyn OperatorStore>,
}

/// Either store.
#[derive(Clone, Debug)]
pub enum Store {
    /// The embedded database.
    Sqlite(Arc<SqliteStore>),
    /// PostgreSQL.
    Postgres(Arc<PostgresStore>),
}

impl Store {
    /// Its ports.
    pub fn ports(&self) -> StorePorts {
        match self {
            Self::Sqlite(store) => StorePorts::of(store),
            Self::Postgres(store) => StorePorts::of(store),
        }
    }

    /// Has damaged rows counted and logged by `events`.
    pub fn report_to(&self, events: Arc<dyn EventSink>) {
        match self {
            Self::Sqlite(store) => store.report_to(events),
            Self::Postgres(store) => store.report_to(events),
        }
    }

    /// How busy it is.
    pub fn load(&self) -> StoreLoad {
        match self {
            Self::Sqlite(store) => store.load(),
            Self::Postgres(store) => store.load(),
        }
    }

    /// How the database's schema stands to this build's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        match self {
            Self::Sqlite(store) => store.schema_state().await,
            Self::Postgres(store) => store.schema_state().await,
        }
    }

    /// Applies the migrations that are missing and tells `progress` of each before it runs. How many ran.
    ///
    /// # Errors
    /// The schema is of a newer build, or the database fails; earlier migrations stand.
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

    /// How the tables of a PostgreSQL that is spread over machines lie. `None`: it is not, and cannot be.
    ///
    /// # Errors
    /// The extension of the database cannot be used as it is, or the database cannot be read.
    pub async fn spreading(&self) -> Result<Option<Spreading>, SpreadError> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(store) => store.spreading().await,
        }
    }

    /// Spreads the tables over the nodes of the database, in one transaction. How many were moved.
    ///
    /// # Errors
    /// The database cannot be spread, or fails.
    pub async fn spread(&self) -> Result<usize, SpreadError> {
        match self {
            Self::Sqlite(_) => Err(SpreadError::Embedded),
            Self::Postgres(store) => store.spread().await,
        }
    }

    /// Waits until the store can only be used again by another process; for ever, if it never comes to that. Then
    /// whoever serves it ends with a failure.
    pub async fn failed(&self) {
        match self {
            Self::Sqlite(store) => store.failed().await,
            Self::Postgres(_) => std::future::pending().await,
        }
    }

    /// Finishes what was begun and lets the database go.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}

impl StorePorts {
    fn of<D: Database>(store: &Arc<DieselStore<D>>) -> Self {
        Self {
            organizations: store.clone(),
            accounts: store.clone(),
            credentials: store.clone(),
            integrations: store.clone(),
            receivers: store.clone(),
            activations: store.clone(),
            keys: store.clone(),
            audit: store.clone(),
            trail: store.clone(),
            inspection: store.clone(),
            rotation: store.clone(),
            operator: store.clone(),
        }
    }
}
