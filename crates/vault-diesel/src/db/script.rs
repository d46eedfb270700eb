//! Statements of migrations.

use super::backend::Db;
use super::tx::Tx;
use crate::migration::in_postgres_spelling;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};

diesel::table! {
    sqlite_master (name) {
        name -> Text,
    }
}

/// Executes statements that are written in the spelling of SQLite and return no rows.
pub(crate) async fn run(tx: &Tx<'_>, sql: &str) -> QueryResult<()> {
    match tx.dialect() {
        Db::Sqlite => tx.script(sql).await,
        Db::Pg => tx.script(&in_postgres_spelling(sql)).await,
    }
}

/// Returns whether a table exists: on PostgreSQL, where unqualified names are searched.
pub(crate) async fn has_table(tx: &Tx<'_>, name: &str) -> QueryResult<bool> {
    match tx.dialect() {
        Db::Sqlite => {
            let table = sqlite_master::table.filter(sqlite_master::name.eq(name)).select(sqlite_master::name);
            Ok(tx.first::<String, _>(table).await?.is_some())
        }
        Db::Pg => {
            let exists = diesel::dsl::sql::<Bool>("to_regclass(").bind::<Text, _>(name).sql(") IS NOT NULL");
            tx.one(diesel::select(exists)).await
        }
    }
}

/// Makes other processes that migrate wait until the transaction ends. SQLite has one writer.
pub(crate) async fn lock_table(tx: &Tx<'_>, name: &str) -> QueryResult<()> {
    match tx.dialect() {
        Db::Sqlite => Ok(()),
        Db::Pg => tx.script(&format!("LOCK TABLE {name} IN EXCLUSIVE MODE")).await,
    }
}
