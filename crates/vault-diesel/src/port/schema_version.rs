//! Migrations: reading which were applied, and applying the missing ones.

use super::{Database, DieselStore};
use crate::db::{OpenTx as _, Tx, script};
use crate::failure::Failure;
use crate::migration::{self, CREATE_VERSIONS_TABLE, MigrateError, Migration, SchemaState};
use crate::schema::schema_versions;
use crate::work::End;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::port::StoreError;
use vault_core::time::Timestamp;

const TABLE: &str = "schema_versions";

/// Reads the versions of the migrations that were applied. `None` if the database has no table of them.
pub(crate) async fn applied_migrations(tx: &Tx<'_>) -> Result<Option<Vec<String>>, Failure> {
    if !script::has_table(tx, TABLE).await? {
        return Ok(None);
    }
    Ok(Some(tx.load(schema_versions::table.select(schema_versions::version)).await?))
}

/// Applies a migration, unless another process has applied it. Returns whether it was applied.
async fn apply(tx: &Tx<'_>, migration: Migration, now: Timestamp) -> Result<bool, Failure> {
    script::lock_table(tx, TABLE).await?;
    let new = diesel::insert_into(schema_versions::table)
        .values((schema_versions::version.eq(migration.version), schema_versions::applied_at.eq(now.as_millis())))
        .on_conflict_do_nothing();
    if tx.execute(new).await? == 0 {
        return Ok(false);
    }
    script::run(tx, migration.sql).await?;
    Ok(true)
}

#[allow(private_bounds, reason = "both databases are in this crate")]
impl<D: Database> DieselStore<D> {
    /// Compares the database's schema with this build's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        Ok(migration::compare(&self.applied().await?.unwrap_or_default()))
    }

    async fn applied(&self) -> Result<Option<Vec<String>>, StoreError> {
        let read = self.look((), |connection, ()| {
            Box::pin(async move { Ok((applied_migrations(&connection.tx()).await?, End::Unchanged)) })
        });
        read.await
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
                migration::pending(&self.applied().await?.unwrap_or_default())
            }
        };
        let mut count = 0;
        for migration in pending {
            progress(migration);
            let applied = self.change((migration, now), |connection, (migration, now)| {
                Box::pin(async move {
                    let applied = apply(&connection.tx(), *migration, *now).await?;
                    Ok((applied, if applied { End::Commit } else { End::Unchanged }))
                })
            });
            count += usize::from(applied.await?);
        }
        self.spread_new_tables().await?;
        Ok(count)
    }

    /// Creates the table of applied migrations, unless it exists.
    async fn prepare(&self) -> Result<(), StoreError> {
        let created = self.change((), |connection, ()| {
            Box::pin(async move { Ok((script::run(&connection.tx(), CREATE_VERSIONS_TABLE).await?, End::Commit)) })
        });
        match created.await {
            // If several processes create the table concurrently, PostgreSQL fails all but one, with different errors.
            Err(_) if self.applied().await?.is_some() => Ok(()),
            created => created,
        }
    }
}
