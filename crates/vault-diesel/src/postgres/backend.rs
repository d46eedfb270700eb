//! What the decisions need of PostgreSQL.

use diesel::result::QueryResult;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use std::borrow::Cow;

pub(crate) use super::store::PostgresStore as Store;
pub(crate) use diesel::pg::Pg as Database;
pub(crate) use diesel_async::{AsyncPgConnection as Connection, RunQueryDsl as RunQuery};

/// Reads the first rows.
macro_rules! load_page {
    ($query:expr, $connection:expr, $limit:expr) => {
        diesel::QueryDsl::limit($query, i64::try_from($limit).unwrap_or(i64::MAX)).load($connection)
    };
}

/// Reads the first rows of one query, and then the row of another if there is one, in one exchange with the server.
macro_rules! load_beside {
    ($query:expr, $connection:expr, $limit:expr, $other:expr) => {{
        let shared = &*$connection;
        let (mut one, mut two) = (shared, shared);
        let limited = diesel::QueryDsl::limit($query, i64::try_from($limit).unwrap_or(i64::MAX));
        let rows = limited.load(&mut one);
        let other = async { diesel::OptionalExtension::optional($other.get_result(&mut two).await) };
        futures_util::future::try_join(rows, other).await
    }};
}

/// Keeps the rows that are read as they are until the decision stands.
macro_rules! for_share {
    ($query:expr) => {
        diesel::QueryDsl::for_share($query)
    };
}

/// Takes the rows that are read, to change them.
macro_rules! for_update {
    ($query:expr) => {
        diesel::QueryDsl::for_update($query)
    };
}

/// Carries statements out in one exchange with the server. How many rows each changed.
macro_rules! execute_together {
    (in $join:path, $connection:expr, $($statement:expr),+) => {{
        let shared = &*$connection;
        $join($(async {
            let mut own = shared;
            $statement.execute(&mut own).await
        }),+)
        .await
    }};
    ($connection:expr, $first:expr, $second:expr, $third:expr, $fourth:expr) => {
        execute_together!(in futures_util::future::try_join4, $connection, $first, $second, $third, $fourth)
    };
    ($connection:expr, $first:expr, $second:expr, $third:expr, $fourth:expr, $fifth:expr) => {
        execute_together!(in futures_util::future::try_join5, $connection, $first, $second, $third, $fourth, $fifth)
    };
}

/// Carries statements of one kind out in one exchange with the server. How many rows each changed.
macro_rules! execute_each {
    ($connection:expr, $statements:expr) => {{
        let shared = &*$connection;
        let statements = $statements.map(|statement| async move {
            let mut own = shared;
            statement.execute(&mut own).await
        });
        futures_util::future::try_join_all(statements).await
    }};
}

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

/// PostgreSQL keeps statistics and needs no hint.
macro_rules! narrow {
    ($condition:expr) => {
        $condition
    };
}

pub(crate) use {
    execute_each, execute_together, for_key_share, for_share, for_update, hold_rows, load_beside, load_page, narrow,
};

/// The history in PostgreSQL's spelling.
pub(crate) fn spell(sql: &str) -> Cow<'_, str> {
    Cow::Owned(crate::migration::in_postgres_spelling(sql))
}

/// Runs statements that return nothing.
pub(crate) async fn run_script(connection: &mut AsyncPgConnection, sql: &str) -> QueryResult<()> {
    connection.batch_execute(sql).await
}

/// Whether there is a table of this name where unqualified names are looked for.
pub(crate) async fn has_table(connection: &mut AsyncPgConnection, name: &str) -> QueryResult<bool> {
    use diesel::sql_types::{Bool, Text};
    diesel::select(diesel::dsl::sql::<Bool>("to_regclass(").bind::<Text, _>(name).sql(") IS NOT NULL"))
        .get_result(connection)
        .await
}

/// Makes other processes that migrate wait until the transaction ends.
pub(crate) async fn hold_table(connection: &mut AsyncPgConnection, name: &str) -> QueryResult<()> {
    connection.batch_execute(&format!("LOCK TABLE {name} IN EXCLUSIVE MODE")).await
}
