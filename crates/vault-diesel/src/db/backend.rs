//! The backend: what Diesel has to know about the two dialects.

use super::bind::{Binds, DbType};
use super::value::DbValue;
use crate::stored::Id;
use diesel::backend::sql_dialect::{
    aggregate_function_expressions, alias_syntax, batch_insert_support, built_in_window_function_require_order,
    concat_clause, default_keyword_for_insert, default_value_clause, exists_syntax, on_conflict_clause,
    returning_clause, select_statement_syntax, window_frame_clause_group_support, window_frame_exclusion_support,
};
use diesel::backend::{Backend, DieselReserveSpecialization, SqlDialect, TrustedBackend};
use diesel::expression::array_comparison::{In, InExpression, Many, NotIn};
// Diesel exports this module only here.
use diesel::internal::derives::multiconnection::sql_dialect::from_clause_syntax;
use diesel::query_builder::{
    AstPass, BoxedLimitOffsetClause, IntoBoxedClause, LimitOffsetClause, NoLimitClause, NoOffsetClause, QueryBuilder,
    QueryFragment,
};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{self, Array, HasSqlType, SingleValue, TypeMetadata};
use std::fmt::Write as _;

/// Both databases. The value is the dialect: a fragment reads it with `out.backend()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Db {
    Sqlite,
    #[default]
    Pg,
}

impl Db {
    /// A reference that outlives every query, as Diesel requires.
    pub(super) const fn as_static(self) -> &'static Self {
        match self {
            Self::Sqlite => &Self::Sqlite,
            Self::Pg => &Self::Pg,
        }
    }
}

impl Backend for Db {
    type QueryBuilder = DbQueryBuilder;
    type RawValue<'a> = DbValue<'a>;
    type BindCollector<'a> = Binds<'a>;
}

impl TypeMetadata for Db {
    type TypeMetadata = DbType;
    type MetadataLookup = ();
}

impl DieselReserveSpecialization for Db {}
impl TrustedBackend for Db {}

impl SqlDialect for Db {
    type ReturningClause = returning_clause::PgLikeReturningClause;
    type OnConflictClause = DbOnConflict;
    type InsertWithDefaultKeyword = default_keyword_for_insert::IsoSqlDefaultKeyword;
    type BatchInsertSupport = batch_insert_support::PostgresLikeBatchInsertSupport;
    type ConcatClause = concat_clause::ConcatWithPipesClause;
    type DefaultValueClauseForInsert = default_value_clause::AnsiDefaultValueClause;
    type EmptyFromClauseSyntax = from_clause_syntax::AnsiSqlFromClauseSyntax;
    type SelectStatementSyntax = select_statement_syntax::AnsiSqlSelectStatement;
    type ExistsSyntax = exists_syntax::AnsiSqlExistsSyntax;
    type ArrayComparison = DbArrays;
    type AliasSyntax = alias_syntax::AsAliasSyntax;
    type WindowFrameClauseGroupSupport = window_frame_clause_group_support::IsoGroupWindowFrameUnit;
    type WindowFrameExclusionSupport = window_frame_exclusion_support::FrameExclusionSupport;
    type AggregateFunctionExpressions = aggregate_function_expressions::PostgresLikeAggregateFunctionExpressions;
    type BuiltInWindowFunctionRequireOrder = built_in_window_function_require_order::NoOrderRequired;
}

/// Support for `ON CONFLICT`, which both dialects spell alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DbOnConflict;

impl on_conflict_clause::SupportsOnConflictClause for DbOnConflict {}
impl on_conflict_clause::SupportsOnConflictClauseWhere for DbOnConflict {}
impl on_conflict_clause::PgLikeOnConflictClause for DbOnConflict {}

/// Comparison with several values: `= ANY($1)` with one array on PostgreSQL, `IN (?, ?)` on SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DbArrays;

impl<T, U> QueryFragment<Db, DbArrays> for In<T, U>
where
    T: QueryFragment<Db>,
    U: QueryFragment<Db> + InExpression,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        // SQLite accepts `IN ()`.
        self.left.walk_ast(out.reborrow())?;
        out.push_sql(match *out.backend() {
            Db::Pg => " = ANY(",
            Db::Sqlite => " IN (",
        });
        self.values.walk_ast(out.reborrow())?;
        out.push_sql(")");
        Ok(())
    }
}

impl<T, U> QueryFragment<Db, DbArrays> for NotIn<T, U>
where
    T: QueryFragment<Db>,
    U: QueryFragment<Db> + InExpression,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.left.walk_ast(out.reborrow())?;
        out.push_sql(match *out.backend() {
            Db::Pg => " != ALL(",
            Db::Sqlite => " NOT IN (",
        });
        self.values.walk_ast(out.reborrow())?;
        out.push_sql(")");
        Ok(())
    }
}

impl<ST, I> QueryFragment<Db, DbArrays> for Many<ST, I>
where
    ST: SingleValue,
    I: ToSql<ST, Db>,
    Vec<I>: ToSql<Array<ST>, Db>,
    Db: HasSqlType<ST> + HasSqlType<Array<ST>>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        if *out.backend() == Db::Pg {
            return out.push_bind_param::<Array<ST>, Vec<I>>(&self.values);
        }
        // The text depends on the number of values.
        out.unsafe_to_cache_prepared();
        for (index, value) in self.values.iter().enumerate() {
            if index > 0 {
                out.push_sql(", ");
            }
            out.push_bind_param::<ST, I>(value)?;
        }
        Ok(())
    }
}

impl<L: QueryFragment<Db>, O: QueryFragment<Db>> QueryFragment<Db> for LimitOffsetClause<L, O> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.limit_clause.walk_ast(out.reborrow())?;
        self.offset_clause.walk_ast(out)
    }
}

impl QueryFragment<Db> for BoxedLimitOffsetClause<'_, Db> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.limit.walk_ast(out.reborrow())?;
        self.offset.walk_ast(out)
    }
}

impl<'a> IntoBoxedClause<'a, Db> for LimitOffsetClause<NoLimitClause, NoOffsetClause> {
    type BoxedClause = BoxedLimitOffsetClause<'a, Db>;

    fn into_boxed(self) -> Self::BoxedClause {
        BoxedLimitOffsetClause { limit: None, offset: None }
    }
}

/// Builds the text of a statement.
#[derive(Debug, Default)]
pub(crate) struct DbQueryBuilder {
    dialect: Db,
    text: String,
    binds: u32,
}

impl DbQueryBuilder {
    pub(super) fn new(dialect: Db) -> Self {
        Self { dialect, ..Self::default() }
    }
}

impl QueryBuilder<Db> for DbQueryBuilder {
    fn push_sql(&mut self, sql: &str) {
        self.text.push_str(sql);
    }

    fn push_identifier(&mut self, identifier: &str) -> QueryResult<()> {
        // SQLite would read an unknown name in double quotes as a string.
        let quote = match self.dialect {
            Db::Sqlite => '`',
            Db::Pg => '"',
        };
        self.text.push(quote);
        self.text.push_str(identifier);
        self.text.push(quote);
        Ok(())
    }

    fn push_bind_param(&mut self) {
        match self.dialect {
            Db::Sqlite => self.text.push('?'),
            Db::Pg => {
                self.binds += 1;
                // Writing to a string cannot fail.
                let _ = write!(self.text, "${}", self.binds);
            }
        }
    }

    fn finish(self) -> String {
        self.text
    }
}

macro_rules! types {
    ($($sql:ty => $scalar:ident),* $(,)?) => {$(
        impl HasSqlType<$sql> for Db {
            fn metadata((): &mut ()) -> DbType {
                DbType::$scalar
            }
        }
    )*};
}

types! {
    sql_types::BigInt => BIG_INT,
    sql_types::Text => TEXT,
    sql_types::Binary => BINARY,
    sql_types::Bool => BOOL,
    Id => ID,
    // Diesel requires these of every backend. No column has them.
    sql_types::SmallInt => UNUSED,
    sql_types::Integer => UNUSED,
    sql_types::Float => UNUSED,
    sql_types::Double => UNUSED,
    sql_types::Date => UNUSED,
    sql_types::Time => UNUSED,
    sql_types::Timestamp => UNUSED,
}

impl<ST> HasSqlType<Array<ST>> for Db
where
    Db: HasSqlType<ST>,
{
    fn metadata(lookup: &mut ()) -> DbType {
        <Db as HasSqlType<ST>>::metadata(lookup).array()
    }
}
