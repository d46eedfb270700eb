//! What the transactions in `decision/` need of SQLite. It responds immediately, so every query is a ready future.

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

pub(crate) use {execute_each, for_key_share, for_update, hold_rows};
