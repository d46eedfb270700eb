//! What the transactions in `decision/` need of PostgreSQL.

pub(crate) use super::store::PostgresStore as Store;
pub(crate) use diesel::pg::Pg as Database;
pub(crate) use diesel_async::{AsyncPgConnection as Connection, RunQueryDsl as RunQuery};

/// Takes the rows that are read, to change them.
macro_rules! for_update {
    ($query:expr) => {
        diesel::QueryDsl::for_update($query)
    };
}

/// Carries statements of one kind out in one exchange with the server. How many rows each changed.
macro_rules! execute_each {
    ($connection:expr, $statements:expr) => {{
        let shared: &crate::postgres::backend::Connection = std::borrow::Borrow::borrow(&*$connection);
        let statements = $statements.map(|statement| async move {
            let mut own = shared;
            statement.execute(&mut own).await
        });
        futures_util::future::try_join_all(statements).await
    }};
}

/// Where a credential is, as text: organization and id. No function aggregates the ids themselves on both databases.
pub(crate) const PLACE: &str = "CAST(organization_id AS TEXT) COLLATE \"C\" || CAST(id AS TEXT)";

/// Keeps the rows that are read from being deleted until the decision stands; others may change them.
macro_rules! for_key_share {
    ($query:expr) => {
        diesel::QueryDsl::for_key_share($query)
    };
}

/// Takes the rows of a query, to change them.
macro_rules! hold_rows {
    ($query:expr, $connection:expr) => {
        diesel::QueryDsl::for_update($query).execute($connection).await.map(drop)
    };
}

pub(crate) use {execute_each, for_key_share, for_update, hold_rows};
