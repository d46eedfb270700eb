//! An open transaction on either database.

use super::backend::Db;
use super::fragments::Page;
use super::row::DbRow;
use super::statement::Statement;
use crate::stored::AnyId;
use diesel::SqliteConnection;
use diesel::connection::{Connection as _, LoadConnection as _, SimpleConnection as _};
use diesel::deserialize::FromSqlRow;
use diesel::expression::QueryMetadata;
use diesel::query_builder::{AsQuery, QueryFragment, QueryId};
use diesel::query_dsl::CompatibleType;
use diesel::result::{Error, QueryResult};
use diesel_async::{AsyncConnectionCore, AsyncPgConnection, SimpleAsyncConnection as _};
use futures_util::future::{BoxFuture, Either, FutureExt as _, Ready, ready};
use futures_util::stream::TryStreamExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most rows for which space is reserved before they are read.
const LARGEST_RESERVE: usize = 256;

/// A transaction. Its methods take a shared reference, so `try_join!` sends several statements in one exchange with
/// PostgreSQL. They arrive in the order in which their futures are first polled.
///
/// SQLite executes a statement when the method is called. PostgreSQL receives it when its future is first polled. Neither
/// future borrows the query.
#[allow(missing_debug_implementations, reason = "a connection has none")]
pub(crate) struct Tx<'c> {
    connection: Connection<'c>,
    /// Whether a statement failed on SQLite. Like PostgreSQL, the transaction then refuses further statements: those of a
    /// `try_join!` must not write after the first of them failed.
    failed: AtomicBool,
    /// Whether a statement changed rows on SQLite. PostgreSQL rolls back every transaction that does not commit.
    written: AtomicBool,
}

enum Connection<'c> {
    /// The mutex makes `&Tx` `Send`. It is never contended.
    Sqlite(Mutex<&'c mut SqliteConnection>),
    Pg(&'c AsyncPgConnection),
}

/// The result of a statement.
pub(crate) type Reply<'t, T> = Either<Ready<QueryResult<T>>, BoxFuture<'t, QueryResult<T>>>;

/// What a transaction can be opened on.
pub(crate) trait OpenTx {
    /// Borrows the connection for statements in its open transaction.
    fn tx(&mut self) -> Tx<'_>;
}

impl OpenTx for SqliteConnection {
    fn tx(&mut self) -> Tx<'_> {
        Tx {
            connection: Connection::Sqlite(Mutex::new(self)),
            failed: AtomicBool::new(false),
            written: AtomicBool::new(false),
        }
    }
}

impl OpenTx for AsyncPgConnection {
    fn tx(&mut self) -> Tx<'_> {
        Tx { connection: Connection::Pg(self), failed: AtomicBool::new(false), written: AtomicBool::new(false) }
    }
}

impl OpenTx for &AsyncPgConnection {
    fn tx(&mut self) -> Tx<'_> {
        Tx { connection: Connection::Pg(self), failed: AtomicBool::new(false), written: AtomicBool::new(false) }
    }
}

type Decode<U> = fn(&DbRow<'_>) -> QueryResult<U>;

fn decode<ST, U: FromSqlRow<ST, Db>>(row: &DbRow<'_>) -> QueryResult<U> {
    U::build_from_row(row).map_err(Error::DeserializationError)
}

impl Tx<'_> {
    pub(super) const fn dialect(&self) -> Db {
        match self.connection {
            Connection::Sqlite(_) => Db::Sqlite,
            Connection::Pg(_) => Db::Pg,
        }
    }

    /// Returns whether rows were changed, as far as the transaction must be rolled back for it.
    pub(crate) fn has_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    /// Reads all rows.
    pub(crate) fn load<'t, U, Q>(&'t self, query: Q) -> Reply<'t, Vec<U>>
    where
        Q: AsQuery<Query: QueryFragment<Db> + QueryId, SqlType: CompatibleType<U, Db>>,
        Db: QueryMetadata<Q::SqlType>,
        U: FromSqlRow<<Q::SqlType as CompatibleType<U, Db>>::SqlType, Db> + Send + 't,
    {
        let query = query.as_query();
        self.rows(Statement::of(&query, Q::Query::query_id(), self.dialect()), usize::MAX, decode)
    }

    /// Reads the first rows, at most `limit`.
    pub(crate) fn page<'t, U, Q>(&'t self, query: Q, limit: usize) -> Reply<'t, Vec<U>>
    where
        Q: AsQuery<Query: QueryFragment<Db> + QueryId, SqlType: CompatibleType<U, Db>>,
        Db: QueryMetadata<Q::SqlType>,
        U: FromSqlRow<<Q::SqlType as CompatibleType<U, Db>>::SqlType, Db> + Send + 't,
    {
        let query = Page::new(query.as_query(), limit);
        self.rows(Statement::of(&query, Page::<Q::Query>::query_id(), self.dialect()), limit, decode)
    }

    /// Reads the first row, if there is one.
    pub(crate) fn first<'t, U, Q>(&'t self, query: Q) -> Reply<'t, Option<U>>
    where
        Q: AsQuery<Query: QueryFragment<Db> + QueryId, SqlType: CompatibleType<U, Db>>,
        Db: QueryMetadata<Q::SqlType>,
        U: FromSqlRow<<Q::SqlType as CompatibleType<U, Db>>::SqlType, Db> + Send + 't,
    {
        let query = query.as_query();
        let statement = Statement::of(&query, Q::Query::query_id(), self.dialect());
        self.row(statement, decode)
    }

    /// Reads the row of a query that always has one, such as a count.
    pub(crate) fn one<'t, U, Q>(&'t self, query: Q) -> Reply<'t, U>
    where
        Q: AsQuery<Query: QueryFragment<Db> + QueryId, SqlType: CompatibleType<U, Db>>,
        Db: QueryMetadata<Q::SqlType>,
        U: FromSqlRow<<Q::SqlType as CompatibleType<U, Db>>::SqlType, Db> + Send + 't,
    {
        let required = |row: QueryResult<Option<U>>| row?.ok_or(Error::NotFound);
        match self.first(query) {
            Either::Left(row) => Either::Left(ready(required(row.into_inner()))),
            Either::Right(row) => Either::Right(row.map(required).boxed()),
        }
    }

    /// Executes a statement that returns no rows. The reply is the number of rows that it changed.
    pub(crate) fn execute<Q: QueryFragment<Db> + QueryId>(&self, query: Q) -> Reply<'_, usize> {
        self.run(Statement::of(&query, Q::query_id(), self.dialect()))
    }

    /// Executes statements of one kind in one exchange with PostgreSQL. The reply is the number of rows that each changed.
    pub(crate) fn execute_each<Q: QueryFragment<Db> + QueryId>(
        &self,
        queries: impl IntoIterator<Item = Q>,
    ) -> Reply<'_, Vec<usize>> {
        let replies: Vec<_> = queries.into_iter().map(|query| self.execute(query)).collect();
        match self.dialect() {
            Db::Sqlite => {
                let counts = replies.into_iter().map(|reply| reply.now_or_never().unwrap_or(Err(Error::NotFound)));
                Either::Left(ready(counts.collect()))
            }
            Db::Pg => Either::Right(futures_util::future::try_join_all(replies).boxed()),
        }
    }

    /// Executes statements whose text is fixed and that have no values.
    pub(super) async fn script(&self, sql: &str) -> QueryResult<()> {
        match &self.connection {
            Connection::Sqlite(connection) => self.on_sqlite(connection, |connection| connection.batch_execute(sql)),
            Connection::Pg(connection) => {
                let mut connection: &AsyncPgConnection = connection;
                connection.batch_execute(sql).await
            }
        }
    }

    /// Returns the next id that a column can store.
    pub(crate) fn next_id(&self, id: AnyId) -> AnyId {
        match self.dialect() {
            Db::Sqlite => id.next_bytes(),
            Db::Pg => id.next_uuid(),
        }
    }

    fn row<'t, U: Send + 't>(
        &'t self,
        statement: QueryResult<Statement<'_>>,
        decode: Decode<U>,
    ) -> Reply<'t, Option<U>> {
        match self.rows(statement, 1, decode) {
            Either::Left(rows) => Either::Left(ready(rows.into_inner().map(|rows| rows.into_iter().next()))),
            Either::Right(rows) => {
                Either::Right(rows.map(|rows| rows.map(|rows: Vec<U>| rows.into_iter().next())).boxed())
            }
        }
    }

    /// Reads rows, `most` of them.
    fn rows<'t, U: Send + 't>(
        &'t self,
        statement: QueryResult<Statement<'_>>,
        most: usize,
        decode: Decode<U>,
    ) -> Reply<'t, Vec<U>> {
        let statement = match statement {
            Ok(statement) => statement,
            Err(error) => return Either::Left(ready(Err(error))),
        };
        match &self.connection {
            Connection::Sqlite(connection) => Either::Left(ready(self.on_sqlite(connection, |connection| {
                let mut rows = Vec::with_capacity(if most == usize::MAX { 0 } else { most.min(LARGEST_RESERVE) });
                for row in connection.load(statement)?.take(most) {
                    rows.push(decode(&DbRow::Sqlite(row?))?);
                }
                Ok(rows)
            }))),
            Connection::Pg(connection) => {
                let mut connection: &AsyncPgConnection = connection;
                let reply = AsyncConnectionCore::load(&mut connection, statement);
                let read = async move {
                    let mut returned = reply.await?;
                    let mut rows = Vec::new();
                    while rows.len() < most {
                        let Some(row) = returned.try_next().await? else { break };
                        rows.push(decode(&DbRow::Pg(row))?);
                    }
                    Ok(rows)
                };
                Either::Right(read.boxed())
            }
        }
    }

    /// Executes a rendered statement.
    pub(super) fn run(&self, statement: QueryResult<Statement<'_>>) -> Reply<'_, usize> {
        let statement = match statement {
            Ok(statement) => statement,
            Err(error) => return Either::Left(ready(Err(error))),
        };
        match &self.connection {
            Connection::Sqlite(connection) => {
                let execute = |connection: &mut SqliteConnection| connection.execute_returning_count(&statement);
                let changed = self.on_sqlite(connection, execute);
                if !matches!(changed, Ok(0)) {
                    self.written.store(true, Ordering::Relaxed);
                }
                Either::Left(ready(changed))
            }
            Connection::Pg(connection) => {
                let mut connection: &AsyncPgConnection = connection;
                Either::Right(AsyncConnectionCore::execute_returning_count(&mut connection, statement))
            }
        }
    }

    fn on_sqlite<T>(
        &self,
        connection: &Mutex<&mut SqliteConnection>,
        execute: impl FnOnce(&mut SqliteConnection) -> QueryResult<T>,
    ) -> QueryResult<T> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::RollbackTransaction);
        }
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let result = execute(&mut connection);
        if matches!(result, Err(Error::DatabaseError(..))) {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}
