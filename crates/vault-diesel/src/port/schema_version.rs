//! Migrations: reading which were applied, and applying the missing ones.

use super::{Database, DieselStore};
use crate::migration::{self, MigrateError, Migration, SchemaState};
use crate::transaction::schema_version::{AppliedMigrations, ApplyMigration, CreateVersionsTable};
use vault_core::port::StoreError;
use vault_core::time::Timestamp;

#[allow(private_bounds, reason = "both databases are in this crate")]
impl<D: Database> DieselStore<D> {
    /// Compares the database's schema with this build's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        let applied = self.answer(None, AppliedMigrations).await?;
        Ok(migration::compare(&applied.unwrap_or_default()))
    }

    /// Applies the missing migrations, each in its own transaction, and calls `progress` before each. Several processes may
    /// call this concurrently: each migration runs once. On a database that can be distributed over nodes, new tables are
    /// distributed.
    ///
    /// # Errors
    /// The schema is of a newer build, or the database fails. Earlier migrations persist.
    pub async fn migrate(
        &self,
        now: Timestamp,
        progress: &mut (dyn FnMut(Migration) + Send),
    ) -> Result<usize, MigrateError> {
        let pending = match self.schema_state().await? {
            SchemaState::Newer(version) => return Err(MigrateError::Newer(version)),
            SchemaState::Unreleased(version) => return Err(MigrateError::Unreleased(version)),
            SchemaState::Current => Vec::new(),
            SchemaState::Empty | SchemaState::Pending(_) => {
                self.prepare().await?;
                let applied = self.answer(None, AppliedMigrations).await?;
                migration::pending(&applied.unwrap_or_default())
            }
        };
        let mut count = 0;
        for migration in pending {
            progress(migration);
            count += usize::from(self.run_patiently(ApplyMigration { migration, now }).await?);
        }
        self.spread_new_tables().await?;
        Ok(count)
    }

    /// Creates the table of applied migrations, unless it exists.
    async fn prepare(&self) -> Result<(), StoreError> {
        match self.run_patiently(CreateVersionsTable).await {
            // If several processes create the table concurrently, PostgreSQL fails all but one, with different errors.
            Err(_) if self.answer(None, AppliedMigrations).await?.is_some() => Ok(()),
            created => created,
        }
    }
}
