//! Inserting rows of one organization: on PostgreSQL several rows with one statement.

use super::backend::{Db, DbQueryBuilder};
use super::bind::{ArrayBytes, Binds, TypedBind};
use super::statement::{Statement, text_of};
use super::tx::{Reply, Tx};
use diesel::Table;
use diesel::insertable::{InsertValues, Insertable};
use diesel::query_builder::{AstPass, InsertStatement, QueryBuilder as _, QueryFragment, QueryId, ValuesClause};
use diesel::query_source::QuerySource;
use diesel::result::{Error, QueryResult};
use futures_util::future::{Either, FutureExt as _, ready};
use std::any::TypeId;
use std::marker::PhantomData;

/// The column that names the organization of a row.
const ORGANIZATION: &str = "\"organization_id\"";

impl Tx<'_> {
    /// Inserts rows of one organization, all or none: fewer inserted rows are an error.
    ///
    /// SQLite executes one prepared statement for each row. PostgreSQL executes one statement with an array for each column,
    /// which is prepared once for any number of rows. It reads the organization from its row, so that a PostgreSQL that is
    /// distributed over nodes executes it where that row is stored and commits in one phase. A single row is inserted by its
    /// values, so that such a PostgreSQL keeps its plan.
    pub(crate) fn insert<T, R, V>(&self, table: T, rows: impl IntoIterator<Item = R>) -> Reply<'_, usize>
    where
        T: Table + Copy + QuerySource<FromClause: QueryFragment<Db>>,
        R: Insertable<T, Values = ValuesClause<V, T>>,
        V: InsertValues<Db, T> + QueryId,
        InsertStatement<T, ValuesClause<V, T>>: QueryFragment<Db> + QueryId,
    {
        let mut rows: Vec<R> = rows.into_iter().collect();
        let count = rows.len();
        if self.dialect() == Db::Sqlite || count <= 1 {
            let single = |row: R| diesel::insert_into(table).values(row);
            if count > 1 {
                let inserted = self.execute_each(rows.into_iter().map(single)).now_or_never();
                return Either::Left(ready(inserted.unwrap_or(Err(Error::NotFound)).map(|each| each.iter().sum())));
            }
            return rows.pop().map_or(Either::Left(ready(Ok(0))), |row| self.execute(single(row)));
        }
        let values: Vec<V> = rows.into_iter().map(|row| row.values().values).collect();
        let inserted = self.run(unnest::<T, V>(table, &values, self.dialect()));
        // None is inserted if the organization does not exist. The transaction has locked it.
        let all = move |inserted: QueryResult<usize>| match inserted? {
            inserted if inserted == count => Ok(inserted),
            _ => Err(Error::NotFound),
        };
        Either::Right(inserted.map(all).boxed())
    }
}

/// The names of the columns that values are inserted into.
struct ColumnNames<'a, V, T>(&'a V, PhantomData<T>);

impl<V: InsertValues<Db, T>, T: Table> QueryFragment<Db> for ColumnNames<'_, V, T> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.0.column_names(out)
    }
}

/// Distinguishes the text of the statement for several rows from that for one.
struct Several<V>(PhantomData<V>);

fn unnest<'q, T, V>(table: T, rows: &'q [V], dialect: Db) -> QueryResult<Statement<'q>>
where
    T: Table + QuerySource<FromClause: QueryFragment<Db>>,
    V: InsertValues<Db, T> + QueryId,
{
    let Some(first) = rows.first() else { return Err(Error::NotFound) };
    let render = |fragment: &dyn QueryFragment<Db>| {
        let mut text = DbQueryBuilder::new(dialect);
        fragment.to_sql(&mut text, dialect.as_static())?;
        Ok::<_, Error>(text.finish())
    };
    let names = render(&ColumnNames::<V, T>(first, PhantomData))?;
    let names: Vec<&str> = names.split(", ").collect();
    let wrong = || Error::QueryBuilderError("a row names its organization, and each column has one value".into());
    let organization = names.iter().position(|name| *name == ORGANIZATION).ok_or_else(wrong)?;

    let mut columns: Vec<(Option<super::bind::DbType>, ArrayBytes)> = Vec::new();
    columns.resize_with(names.len(), Default::default);
    let mut of_organization = None;
    let mut binds = Binds::default();
    for row in rows {
        row.collect_binds(&mut binds, &mut (), dialect.as_static())?;
        if binds.0.len() != columns.len() {
            return Err(wrong());
        }
        for (place, (bind, column)) in binds.0.drain(..).zip(&mut columns).enumerate() {
            if place == organization {
                of_organization.get_or_insert(bind);
            } else {
                column.0 = Some(bind.of);
                column.1.push(bind.of.scalar, &bind.value).map_err(|error| Error::SerializationError(error.into()))?;
            }
        }
    }
    let id = V::query_id().map(|_| TypeId::of::<Several<V::QueryId>>());
    let (text, _) = text_of(id, dialect, &|| {
        let others: Vec<&str> = names.iter().copied().filter(|name| *name != ORGANIZATION).collect();
        let table = render(&table.from_clause())?;
        let new: Vec<String> = others.iter().map(|name| format!("new.{name}")).collect();
        let places: Vec<String> = (1..=others.len()).map(|number| format!("${number}")).collect();
        let (others, new, arrays, last) = (others.join(", "), new.join(", "), places.join(", "), names.len());
        let text = format!(
            "INSERT INTO {table} ({ORGANIZATION}, {others}) SELECT organizations.id, {new} \
             FROM organizations, unnest({arrays}) AS new ({others}) WHERE organizations.id = ${last}"
        );
        Ok((text, true))
    })?;
    let arrays = columns.into_iter().filter_map(|(of, elements)| Some((of?, elements)));
    let arrays = arrays.map(|(of, elements)| TypedBind { of: of.array(), value: elements.into() });
    Ok(Statement::new(text, arrays.chain(of_organization).collect()))
}
