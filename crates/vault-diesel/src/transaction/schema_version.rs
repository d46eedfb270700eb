//! The migrations that a database has applied.

use super::audit::AuditRecorder;
use super::{Read, Transaction};
use crate::db::{Tx, script};
use crate::failure::Failure;
use crate::migration::{CREATE_VERSIONS_TABLE, Migration};
use crate::schema::schema_versions;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::time::Timestamp;

const TABLE: &str = "schema_versions";

/// The versions of the migrations that were applied. `None` if the database has no table of them.
pub(crate) struct AppliedMigrations;

impl Read for AppliedMigrations {
    type Outcome = Option<Vec<String>>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<Vec<String>>, Failure> {
        if !script::has_table(tx, TABLE).await? {
            return Ok(None);
        }
        Ok(Some(tx.load(schema_versions::table.select(schema_versions::version)).await?))
    }
}

/// Creates the table of applied migrations, unless it exists.
pub(crate) struct CreateVersionsTable;

impl Transaction for CreateVersionsTable {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        script::run(tx, CREATE_VERSIONS_TABLE).await?;
        audit.commit_without_entry();
        Ok(())
    }
}

/// Applies a migration, unless another process has applied it.
pub(crate) struct ApplyMigration {
    pub(crate) migration: Migration,
    pub(crate) now: Timestamp,
}

impl Transaction for ApplyMigration {
    /// Whether the migration was applied.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { migration, now } = self;
        script::lock_table(tx, TABLE).await?;
        let new = diesel::insert_into(schema_versions::table)
            .values((schema_versions::version.eq(migration.version), schema_versions::applied_at.eq(now.as_millis())))
            .on_conflict_do_nothing();
        if tx.execute(new).await? == 0 {
            return Ok(false);
        }
        script::run(tx, migration.sql).await?;
        audit.commit_without_entry();
        Ok(true)
    }
}
