//! Writes the PostgreSQL database and reads it back, in one transaction.

use super::source::{Hold, Read, Snapshot, next, next_row};
use super::value::{AnyRow, Tally};
use super::{CopiedTable, Progress, Step, Table, TransferError, quoted};
use crate::migration::{self, CREATE_VERSIONS_TABLE, MIGRATIONS, SchemaState, in_postgres_spelling};
use crate::postgres::{self, PostgresSettings};
use crate::sqlite::SqliteStore;
use futures_util::TryStreamExt as _;
use std::pin::pin;
use std::sync::Arc;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// A copy has no time limit, but a wait for a lock has.
const WITHOUT_HASTE: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '30s'";
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const TABLES: &str = "SELECT relname::text, array_agg(attname::text) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid \
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped \
    GROUP BY 1 ORDER BY 1";
/// Tables that have rows in a database without a vault: migrations write them.
const FILLED: [&str; 3] = ["account_logins", "attempt_classes", "schema_versions"];
/// Number of rows between two reports of the progress.
const TELL_EVERY: u64 = 1_000;

/// A transfer to a suitable PostgreSQL database, in an open transaction. Dropping it before [`Transfer::run`] finishes
/// changes nothing.
pub struct Transfer {
    client: Client,
    is_complete: bool,
}

/// Result of a transfer. The embedded database is closed to writers until the release.
pub struct Transferred {
    /// All tables and their rows, which are the same in both databases.
    pub tables: Vec<CopiedTable>,
    hold: Hold,
}

impl Transferred {
    /// Releases the embedded database.
    pub async fn release(self) {
        self.hold.release().await;
    }
}

impl Transfer {
    /// Connects to the target and checks that it is empty, or already contains the vault with this instance ID. Creates
    /// the schema if it does not exist.
    ///
    /// # Errors
    /// The target cannot be reached, is not empty, or has the schema of another build.
    pub async fn prepare(target: &PostgresSettings, instance: &str) -> Result<Self, TransferError> {
        let client = postgres::client(target).await?;
        let transfer = Self { client, is_complete: false };
        transfer.execute("begin", &format!("{WITHOUT_HASTE}; {BEGIN}")).await?;
        let found = transfer.tables().await?;
        let versions = match found.iter().any(|(table, _)| table == "schema_versions") {
            true => transfer.texts("SELECT version FROM schema_versions").await?,
            false => Vec::new(),
        };
        match migration::compare(&versions) {
            SchemaState::Newer(version) => return Err(TransferError::NewerSchema(version)),
            SchemaState::Unreleased(version) => return Err(TransferError::UnreleasedSchema(version)),
            SchemaState::Pending(count) => return Err(TransferError::OlderSchema(count)),
            SchemaState::Current => {}
            SchemaState::Empty => {
                if let Some((table, _)) = found.first() {
                    return Err(TransferError::NotEmpty(format!("table {table}")));
                }
                transfer.create_schema().await?;
                return Ok(transfer);
            }
        }
        let names: Vec<String> = found.into_iter().map(|(table, _)| table).collect();
        let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", quoted(&names));
        transfer.execute("lock tables", &lock).await?;
        match transfer.texts("SELECT id::text FROM instance").await?.pop() {
            Some(id) if id == instance => return Ok(Self { is_complete: true, ..transfer }),
            Some(id) => return Err(TransferError::OtherVault(id)),
            None => {}
        }
        for table in names.iter().filter(|table| !FILLED.contains(&table.as_str())) {
            if !transfer.texts(&format!("SELECT 'row' FROM \"{table}\" LIMIT 1")).await?.is_empty() {
                return Err(TransferError::NotEmpty(format!("rows in table {table}")));
            }
        }
        Ok(transfer)
    }

    /// Returns whether the target already contains this vault, for example after a transfer whose outcome was not
    /// received. [`Transfer::run`] then only compares.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Copies every row of every table, reads all of them back, compares them and commits.
    ///
    /// No other process can write to the embedded database until the result is released. A `rehearsal` does not block
    /// writers: it copies a snapshot of the database, and rolls back the target at the end.
    ///
    /// # Errors
    /// The embedded database cannot be read, the target returns an error, or the rows differ.
    pub async fn run(
        self,
        source: &SqliteStore,
        rehearsal: bool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Transferred, TransferError> {
        let mut snapshot = Snapshot::take(Arc::clone(source.source()), !rehearsal)
            .map_err(|error| TransferError::Source(error.into()))?;
        let outcome = self.copy_and_compare(&mut snapshot, progress).await;
        let outcome = match outcome {
            Ok(tables) => self.end(rehearsal).await.map(|()| tables),
            Err(error) => Err(error),
        };
        let hold = snapshot.into_hold();
        match outcome {
            Ok(tables) => Ok(Transferred { tables, hold }),
            Err(error) => {
                hold.release().await;
                Err(error)
            }
        }
    }

    async fn copy_and_compare(
        &self,
        snapshot: &mut Snapshot,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Vec<CopiedTable>, TransferError> {
        let Read::Catalogue(tables, total) = next(&mut snapshot.rows).await? else {
            return Err(TransferError::Source("it has no catalogue".into()));
        };
        self.compare_catalogue(&tables).await?;
        if !self.is_complete {
            for table in tables.iter().rev() {
                self.execute("prepare tables", &format!("DELETE FROM \"{}\"", table.name)).await?;
            }
        }
        let mut tell = Teller { progress, step: Step::Copying, done: 0, total };
        let mut copied = Vec::with_capacity(tables.len());
        for table in &tables {
            tell.of(&table.name);
            copied.push(self.copy(table, snapshot, &mut tell).await?);
        }
        let mut tell = Teller { step: Step::Comparing, done: 0, ..tell };
        let mut same = Vec::with_capacity(tables.len());
        for (table, copied) in tables.iter().zip(copied) {
            tell.of(&table.name);
            let found = self.tally(table, &mut tell).await?;
            let (name, rows) = (table.name.clone(), copied.rows);
            let digest = copied.digest();
            if rows != found.rows || digest != found.digest() {
                return Err(match self.is_complete {
                    true => TransferError::Differs { table: name },
                    false => TransferError::Unfaithful(name),
                });
            }
            same.push(CopiedTable { name, rows, digest });
        }
        Ok(same)
    }

    /// Copies the rows of `table` from the snapshot, or only counts them if the target has them.
    async fn copy(
        &self,
        table: &Table,
        snapshot: &mut Snapshot,
        tell: &mut Teller<'_>,
    ) -> Result<Tally, TransferError> {
        let mut tally = Tally::default();
        let failed = |error: Error| refused(format!("copy table {}", table.name), error);
        let mut writer = pin!(match self.is_complete {
            true => None,
            false => {
                let types = self.types(table).await?;
                let copy = format!("COPY \"{}\" ({}) FROM STDIN BINARY", table.name, table.columns());
                Some(BinaryCopyInWriter::new(self.client.copy_in(&copy).await.map_err(failed)?, &types))
            }
        });
        while let Some(row) = next_row(&mut snapshot.rows).await? {
            tally.add(&row);
            if let Some(writer) = writer.as_mut().as_pin_mut() {
                writer.write_raw(&row.0).await.map_err(failed)?;
            }
            tell.row(&table.name);
        }
        if let Some(writer) = writer.as_mut().as_pin_mut() {
            writer.finish().await.map_err(failed)?;
            // Without `ANALYZE`, the server plans for empty tables until autovacuum has analysed them.
            self.execute("analyse tables", &format!("ANALYZE \"{}\"", table.name)).await?;
        }
        Ok(tally)
    }

    /// Reads the rows of `table` from the target.
    async fn tally(&self, table: &Table, tell: &mut Teller<'_>) -> Result<Tally, TransferError> {
        let failed = |error: Error| refused(format!("read table {}", table.name), error);
        let mut tally = Tally::default();
        let mut rows = pin!(self.client.query_raw(&table.select(), [0_i64; 0]).await.map_err(failed)?);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let values: Result<_, _> = (0..row.len()).map(|column| row.try_get(column)).collect();
            tally.add(&AnyRow(values.map_err(failed)?));
            tell.row(&table.name);
        }
        Ok(tally)
    }

    async fn end(&self, rehearsal: bool) -> Result<(), TransferError> {
        if rehearsal {
            return self.execute("undo the rehearsal", "ROLLBACK").await;
        }
        self.client.batch_execute("COMMIT").await.map_err(|error| match error.as_db_error() {
            Some(_) => refused("commit".to_owned(), error),
            None => TransferError::Unconfirmed(error.into()),
        })
    }

    async fn create_schema(&self) -> Result<(), TransferError> {
        for sql in [CREATE_VERSIONS_TABLE].into_iter().chain(MIGRATIONS.iter().map(|migration| migration.sql)) {
            self.execute("create the tables", &in_postgres_spelling(sql)).await?;
        }
        Ok(())
    }

    /// Checks that both databases have the same tables with the same columns.
    async fn compare_catalogue(&self, tables: &[Table]) -> Result<(), TransferError> {
        let sorted = |columns: &[String]| {
            let mut columns = columns.to_vec();
            columns.sort();
            columns
        };
        let found = self.tables().await?;
        for (name, columns) in &found {
            let own = tables.iter().find(|table| table.name == *name);
            if own.is_none_or(|table| sorted(&table.columns) != sorted(columns)) {
                return Err(TransferError::Tables(name.clone()));
            }
        }
        match tables.iter().find(|table| !found.iter().any(|(name, _)| *name == table.name)) {
            Some(missing) => Err(TransferError::Tables(missing.name.clone())),
            None => Ok(()),
        }
    }

    /// Reads the tables of the target with their columns.
    async fn tables(&self) -> Result<Vec<(String, Vec<String>)>, TransferError> {
        let failed = |error| refused("read the catalogue".to_owned(), error);
        let rows = self.client.query(TABLES, &[]).await.map_err(failed)?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, Error>>().map_err(failed)
    }

    async fn types(&self, table: &Table) -> Result<Vec<Type>, TransferError> {
        let prepared = self.client.prepare(&table.select()).await;
        let prepared = prepared.map_err(|error| refused(format!("read table {}", table.name), error))?;
        Ok(prepared.columns().iter().map(|column| column.type_().clone()).collect())
    }

    async fn texts(&self, query: &str) -> Result<Vec<String>, TransferError> {
        let failed = |error| refused("read tables".to_owned(), error);
        let rows = self.client.query(query, &[]).await.map_err(failed)?;
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, Error>>().map_err(failed)
    }

    async fn execute(&self, doing: &str, sql: &str) -> Result<(), TransferError> {
        self.client.batch_execute(sql).await.map_err(|error| refused(doing.to_owned(), error))
    }
}

fn refused(doing: String, error: Error) -> TransferError {
    TransferError::Target { doing, source: error.into() }
}

/// Reports the progress of one step.
struct Teller<'a> {
    progress: &'a mut (dyn FnMut(Progress<'_>) + Send),
    step: Step,
    done: u64,
    total: u64,
}

impl Teller<'_> {
    fn row(&mut self, table: &str) {
        self.done += 1;
        if self.done.is_multiple_of(TELL_EVERY) {
            self.of(table);
        }
    }

    fn of(&mut self, table: &str) {
        (self.progress)(Progress { step: self.step, table, done: self.done, total: self.total });
    }
}
