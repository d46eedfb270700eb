//! Which migrations a database has seen, and applying those it has not.

use super::backend::{Connection, RunQuery, Store, has_table, hold_table, run_script, spell};
use super::{Decided, Verdict};
use crate::failure::Failure;
use crate::migration::{self, CREATE_VERSIONS_TABLE, MigrateError, Migration, SchemaState};
use crate::schema::schema_versions;
use diesel::ExpressionMethods as _;
use vault_core::port::StoreError;
use vault_core::time::Timestamp;

const VERSIONS_TABLE: &str = "schema_versions";

impl Store {
    /// How the database's schema stands to this build's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        let applied = self.read((), |connection, ()| Box::pin(applied(connection))).await?;
        Ok(migration::compare(&applied))
    }

    /// Applies the migrations that are missing, each in a transaction of its own, and tells `progress` of each
    /// before it runs. Several processes may try at once; each migration runs once. Where the database can be spread over
    /// machines, new tables are.
    ///
    /// # Errors
    /// The schema is of a newer build, or the database fails; earlier migrations stand.
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
                let applied = self.read((), |connection, ()| Box::pin(applied(connection))).await?;
                migration::pending(&applied)
            }
        };
        let mut count = 0;
        for migration in pending {
            progress(migration);
            let step = (migration, now);
            count += self.write_patiently(step, |connection, step| Box::pin(apply(connection, *step))).await?;
        }
        self.spread_new_tables().await?;
        Ok(count)
    }

    /// Makes the table of what was applied, unless it is there.
    async fn prepare(&self) -> Result<(), StoreError> {
        match self.write_patiently((), |connection, ()| Box::pin(create(connection))).await {
            // PostgreSQL refuses, in more than one way, what another process makes at this moment.
            Err(_) if self.read((), |connection, ()| Box::pin(is_prepared(connection))).await? => Ok(()),
            made => made,
        }
    }
}

async fn is_prepared(connection: &mut Connection) -> Result<bool, Failure> {
    Ok(has_table(connection, VERSIONS_TABLE).await?)
}

async fn create(connection: &mut Connection) -> Decided<()> {
    Ok(Verdict::Recorded(run_script(connection, &spell(CREATE_VERSIONS_TABLE)).await?))
}

pub(crate) async fn applied(connection: &mut Connection) -> Result<Vec<String>, Failure> {
    if !is_prepared(connection).await? {
        return Ok(Vec::new());
    }
    Ok(diesel::QueryDsl::select(schema_versions::table, schema_versions::version).load(connection).await?)
}

/// How many migrations ran: one, or none if another process was faster.
async fn apply(connection: &mut Connection, (migration, now): (Migration, Timestamp)) -> Decided<usize> {
    hold_table(connection, VERSIONS_TABLE).await?;
    let entered = diesel::insert_into(schema_versions::table)
        .values((schema_versions::version.eq(migration.version), schema_versions::applied_at.eq(now.as_millis())))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if entered == 0 {
        return Ok(Verdict::Undo(0));
    }
    run_script(connection, &spell(migration.sql)).await?;
    Ok(Verdict::Recorded(1))
}
