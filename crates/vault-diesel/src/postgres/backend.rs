//! What the decisions need of PostgreSQL.

pub(crate) use super::store::PostgresStore as Store;
pub(crate) use diesel::pg::Pg as Database;
pub(crate) use diesel_async::{AsyncPgConnection as Connection, RunQueryDsl as RunQuery};

/// Carries statements out in their order, in one exchange with the server. What each came to.
///
/// They arrive in this order: each is sent when its future is first polled, the futures are polled as they are written,
/// and a connection prepares one statement at a time.
macro_rules! pipeline {
    ($connection:expr, $(|$own:ident| $outcome:expr),+) => {{
        let shared: &crate::postgres::backend::Connection = std::borrow::Borrow::borrow(&*$connection);
        futures_util::try_join!($(async {
            let mut own = shared;
            let $own = &mut own;
            $outcome
        }),+)
    }};
}

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

/// Reads one row, if it is there, by each of several queries, in one exchange with the server.
macro_rules! load_each {
    ($connection:expr, $queries:expr) => {{
        let shared: &crate::postgres::backend::Connection = std::borrow::Borrow::borrow(&*$connection);
        let queries = $queries.map(|query| async move {
            let mut own = shared;
            query.get_result(&mut own).await.optional()
        });
        futures_util::future::try_join_all(queries).await
    }};
}

/// Inserts rows with one statement. That of a single row has its values, so that a PostgreSQL that is spread over machines keeps
/// its plan.
macro_rules! insert_rows {
    ($connection:expr, $table:ident, $many:ident, $rows:expr) => {{
        let mut rows: Vec<_> = $rows.collect();
        let count = rows.len();
        let inserted: diesel::QueryResult<usize> = match (count, rows.pop()) {
            (1, Some(row)) => diesel::insert_into(crate::schema::$table::table).values(row).execute($connection).await,
            (_, Some(last)) => {
                let rows: crate::new_row::$many<'_> = rows.into_iter().chain([last]).collect();
                rows.execute($connection).await
            }
            (_, None) => Ok(0),
        };
        // None of several is inserted if the organization is gone, which whoever decides has held.
        inserted.and_then(|inserted| if inserted == count { Ok(count) } else { Err(diesel::result::Error::NotFound) })
    }};
}

/// The rows of a table that belong to one of the credentials.
macro_rules! of_credentials {
    ($table:ident, $organization:expr, $ids:expr) => {{
        use crate::schema::$table as rows;
        use crate::stored::StoredId as _;
        use diesel::{ExpressionMethods as _, QueryDsl as _};
        let ids: Vec<_> = $ids.iter().map(|id| id.stored()).collect();
        rows::table.filter(rows::organization_id.eq($organization.stored())).filter(rows::id.eq_any(ids))
    }};
}

/// Where a credential is, as text: organization and id. No function aggregates the ids themselves on both databases.
pub(crate) const PLACE: &str = "CAST(organization_id AS TEXT) COLLATE \"C\" || CAST(id AS TEXT)";

/// Reads credentials and takes them, to change them: by id, as all take them who take several.
macro_rules! load_credentials {
    ($connection:expr, $organization:expr, $ids:expr, $columns:expr) => {{
        use diesel::QueryDsl as _;
        crate::postgres::backend::of_credentials!(credentials, $organization, $ids)
            .order(crate::schema::credentials::id)
            .select($columns)
            .for_update()
            .load($connection)
            .await
    }};
}

/// Deletes the rows of a table that belong to one of the credentials.
macro_rules! delete_credentials {
    ($connection:expr, $table:ident, $organization:expr, $ids:expr) => {
        diesel::delete(crate::postgres::backend::of_credentials!($table, $organization, $ids))
            .execute($connection)
            .await
    };
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

pub(crate) use super::replacements::write_changes;
pub(crate) use {
    delete_credentials, execute_each, for_key_share, for_update, hold_rows, insert_rows, load_credentials, load_each,
    of_credentials, pipeline,
};
