//! What the decisions need of SQLite. It answers at once, so every query is a future that is ready.

use super::decision::credential::versions::Change;
use crate::failure::Failure;
use diesel::SqliteConnection;
use diesel::query_dsl::LoadQuery;
use diesel::query_dsl::methods::ExecuteDsl;
use diesel::result::QueryResult;
use std::future::{Ready, ready};

pub(crate) use super::store::SqliteStore as Store;
pub(crate) use diesel::SqliteConnection as Connection;
pub(crate) use diesel::sqlite::Sqlite as Database;

/// Runs a query. The same calls as `diesel_async::RunQueryDsl`, answered at once.
pub(crate) trait RunQuery: Sized {
    fn execute(self, connection: &mut SqliteConnection) -> Ready<QueryResult<usize>>
    where
        Self: ExecuteDsl<SqliteConnection>,
    {
        ready(ExecuteDsl::execute(self, connection))
    }

    fn load<'query, Row>(self, connection: &mut SqliteConnection) -> Ready<QueryResult<Vec<Row>>>
    where
        Self: LoadQuery<'query, SqliteConnection, Row>,
    {
        ready(self.internal_load(connection).and_then(Iterator::collect))
    }

    fn get_result<'query, Row>(self, connection: &mut SqliteConnection) -> Ready<QueryResult<Row>>
    where
        Self: LoadQuery<'query, SqliteConnection, Row>,
    {
        let first = self.internal_load(connection).and_then(|mut rows| match rows.next() {
            Some(row) => row,
            None => Err(diesel::NotFound),
        });
        ready(first)
    }
}

impl<Query> RunQuery for Query {}

/// Carries statements out in their order. What each came to.
macro_rules! pipeline {
    ($connection:expr, $(|$own:ident| $outcome:expr),+) => {
        async {
            diesel::QueryResult::Ok(($({
                let $own = &mut *$connection;
                $outcome?
            },)+))
        }
        .await
    };
}

/// One writer at a time: there is nothing to lock.
macro_rules! for_update {
    ($query:expr) => {
        $query
    };
}

/// Carries statements of one kind out, one after the other. How many rows each changed.
macro_rules! execute_each {
    ($connection:expr, $statements:expr) => {
        $statements
            .map(|statement| statement.execute($connection).into_inner())
            .collect::<diesel::QueryResult<Vec<usize>>>()
    };
}

/// Reads one row, if it is there, by each of several queries.
macro_rules! load_each {
    ($connection:expr, $queries:expr) => {
        $queries
            .map(|query| query.get_result($connection).into_inner().optional())
            .collect::<diesel::QueryResult<Vec<_>>>()
    };
}

/// Inserts rows, each with a statement that stays prepared.
macro_rules! insert_rows {
    ($connection:expr, $table:ident, $many:ident, $rows:expr) => {
        crate::sqlite::backend::execute_each!(
            $connection,
            $rows.map(|row| diesel::insert_into(crate::schema::$table::table).values(row))
        )
    };
}

/// Reads credentials, each with a statement that stays prepared.
macro_rules! load_credentials {
    ($connection:expr, $organization:expr, $ids:expr, $columns:expr) => {{
        use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
        let rows = $ids.iter().map(|id| {
            crate::sqlite::decision::credential::row::of_credential!(credentials, $organization, id).select($columns)
        });
        crate::sqlite::backend::load_each!($connection, rows).map(|rows| rows.into_iter().flatten().collect())
    }};
}

/// Deletes the rows of a table that belong to one of the credentials.
macro_rules! delete_credentials {
    ($connection:expr, $table:ident, $organization:expr, $ids:expr) => {{
        use diesel::{ExpressionMethods as _, QueryDsl as _};
        crate::sqlite::backend::execute_each!(
            $connection,
            $ids.iter().map(|id| diesel::delete(crate::sqlite::decision::credential::row::of_credential!(
                $table,
                $organization,
                id
            )))
        )
    }};
}

/// Where a credential is, as text: organization and id. No function aggregates the ids themselves on both databases.
pub(crate) const PLACE: &str = "hex(organization_id) || hex(id)";

/// One writer at a time: there is nothing to lock.
macro_rules! for_key_share {
    ($query:expr) => {
        $query
    };
}

/// One writer at a time: there is nothing to lock.
macro_rules! hold_rows {
    ($query:expr, $connection:expr) => {{
        let _ = ($query, &*$connection);
        diesel::QueryResult::Ok(())
    }};
}

pub(crate) use {
    delete_credentials, execute_each, for_key_share, for_update, hold_rows, insert_rows, load_credentials, load_each,
    pipeline,
};

/// Writes and records changes.
pub(crate) async fn write_changes(connection: &mut SqliteConnection, changes: &[Change<'_>]) -> Result<(), Failure> {
    for change in changes {
        change.write(connection).await?;
    }
    Ok(())
}
