//! Where the dialects differ: row locks, `LIMIT` and planner hints.

use super::backend::Db;
use diesel::dsl::exists;
use diesel::expression::ValidGrouping;
use diesel::expression::is_aggregate;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{BigInt, Bool};
use diesel::{AppearsOnTable, Expression, SelectableExpression};
use std::marker::PhantomData;

/// A lock of rows. It is a type, because connections keep a statement prepared by its type.
pub(crate) trait Lock: QueryId {
    /// The clause on PostgreSQL.
    const CLAUSE: &'static str;
}

macro_rules! locks {
    ($($(#[$doc:meta])* $name:ident = $clause:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, QueryId)]
        pub(crate) struct $name;

        impl Lock for $name {
            const CLAUSE: &'static str = $clause;
        }
    )*};
}

locks! {
    /// Nothing is locked.
    Unlocked = "";
    /// No other transaction deletes the rows or changes their keys.
    KeyShare = " FOR KEY SHARE";
    /// No other transaction changes the rows.
    Share = " FOR SHARE";
    /// No other transaction locks or changes the rows.
    Update = " FOR UPDATE";
}

/// A query that locks the rows it reads until the transaction ends. SQLite has one writer and locks nothing.
#[derive(Clone, Copy, Debug, QueryId)]
pub(crate) struct Locked<Q, L> {
    query: Q,
    lock: PhantomData<L>,
}

/// Locks the rows that a query reads.
pub(crate) fn locked<Q, L: Lock>(query: Q, _lock: L) -> Locked<Q, L> {
    Locked { query, lock: PhantomData }
}

impl<Q: Query, L> Query for Locked<Q, L> {
    type SqlType = Q::SqlType;
}

impl<Q: QueryFragment<Db>, L: Lock> QueryFragment<Db> for Locked<Q, L> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.query.walk_ast(out.reborrow())?;
        if *out.backend() == Db::Pg {
            out.push_sql(L::CLAUSE);
        }
        Ok(())
    }
}

/// The first rows of a query. SQLite would plan a statement with a bound `LIMIT` again at each use. There the caller stops
/// reading instead, because SQLite computes rows one by one.
#[derive(Clone, Copy, Debug, QueryId)]
pub(super) struct Page<Q> {
    query: Q,
    limit: i64,
}

impl<Q> Page<Q> {
    pub(super) fn new(query: Q, limit: usize) -> Self {
        Self { query, limit: i64::try_from(limit).unwrap_or(i64::MAX) }
    }
}

impl<Q: Query> Query for Page<Q> {
    type SqlType = Q::SqlType;
}

impl<Q: QueryFragment<Db>> QueryFragment<Db> for Page<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.query.walk_ast(out.reborrow())?;
        if *out.backend() == Db::Pg {
            out.push_sql(" LIMIT ");
            out.push_bind_param::<BigInt, _>(&self.limit)?;
        }
        Ok(())
    }
}

/// A condition that few rows meet.
#[derive(Clone, Copy, Debug, QueryId, ValidGrouping)]
pub(crate) struct Narrow<E>(E);

/// The type of [`narrow`](fn@narrow), as `#[auto_type]` looks it up.
#[allow(non_camel_case_types, reason = "the name of the function")]
pub(crate) type narrow<E> = Narrow<E>;

/// Makes SQLite use the index of a condition. Without statistics SQLite assumes that an organization has ten rows, and would
/// read all of them by the primary key. PostgreSQL has statistics.
pub(crate) const fn narrow<E>(condition: E) -> Narrow<E> {
    Narrow(condition)
}

impl<E: Expression> Expression for Narrow<E> {
    type SqlType = E::SqlType;
}

impl<S, E: AppearsOnTable<S>> AppearsOnTable<S> for Narrow<E> {}
impl<S, E: SelectableExpression<S>> SelectableExpression<S> for Narrow<E> {}

impl<E: QueryFragment<Db>> QueryFragment<Db> for Narrow<E> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        match *out.backend() {
            Db::Pg => self.0.walk_ast(out),
            Db::Sqlite => {
                out.push_sql("unlikely(");
                self.0.walk_ast(out.reborrow())?;
                out.push_sql(")");
                Ok(())
            }
        }
    }
}

/// A column of text in a condition that no index serves.
#[derive(Clone, Copy, Debug, QueryId, ValidGrouping)]
pub(crate) struct WithoutIndex<C>(C);

/// Keeps PostgreSQL from using the index of a condition: without statistics it may choose that of a condition that every row
/// meets. SQLite looks credentials up by the ids that a label leads to.
pub(crate) const fn without_index<C>(column: C) -> WithoutIndex<C> {
    WithoutIndex(column)
}

impl<C: Expression> Expression for WithoutIndex<C> {
    type SqlType = C::SqlType;
}

impl<S, C: AppearsOnTable<S>> AppearsOnTable<S> for WithoutIndex<C> {}
impl<S, C: SelectableExpression<S>> SelectableExpression<S> for WithoutIndex<C> {}

impl<C: QueryFragment<Db>> QueryFragment<Db> for WithoutIndex<C> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        match *out.backend() {
            Db::Sqlite => self.0.walk_ast(out),
            Db::Pg => {
                out.push_sql("(");
                self.0.walk_ast(out.reborrow())?;
                out.push_sql(" || '')");
                Ok(())
            }
        }
    }
}

/// `EXISTS`, evaluated for each row.
#[derive(Clone, Copy, Debug, QueryId)]
pub(crate) struct ExistsRowByRow<Q>(Q);

/// Tests for each row whether a query has rows. Without statistics, PostgreSQL would compare every row with every other in a
/// join. An `OFFSET` keeps it from making one.
pub(crate) const fn exists_row_by_row<Q>(query: Q) -> ExistsRowByRow<Q> {
    ExistsRowByRow(query)
}

impl<Q> Expression for ExistsRowByRow<Q> {
    type SqlType = Bool;
}

impl<Q, GB> ValidGrouping<GB> for ExistsRowByRow<Q> {
    type IsAggregate = is_aggregate::Never;
}

impl<S, Q> AppearsOnTable<S> for ExistsRowByRow<Q> where exists<Q>: AppearsOnTable<S> {}
impl<S, Q> SelectableExpression<S> for ExistsRowByRow<Q> where exists<Q>: SelectableExpression<S> {}

impl<Q: QueryFragment<Db>> QueryFragment<Db> for ExistsRowByRow<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        out.push_sql("EXISTS (");
        self.0.walk_ast(out.reborrow())?;
        out.push_sql(match *out.backend() {
            Db::Pg => " OFFSET 0)",
            Db::Sqlite => ")",
        });
        Ok(())
    }
}
