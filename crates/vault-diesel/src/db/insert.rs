//! Inserting rows of one organization: on PostgreSQL several rows with one statement.

use super::backend::{Db, DbQueryBuilder};
use super::bind::{ArrayBytes, Bind, Binds, DbType, TypedBind};
use super::statement::{Statement, text_of};
use super::tx::{Reply, Tx};
use diesel::Table;
use diesel::insertable::{InsertValues, Insertable};
use diesel::query_builder::{AstPass, InsertStatement, QueryBuilder as _, QueryFragment, QueryId, ValuesClause};
use diesel::query_source::QuerySource;
use diesel::result::{Error, QueryResult};
use futures_util::future::{Either, FutureExt as _, ready, try_join_all};
use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The column that names the organization of a row.
const ORGANIZATION: &str = "\"organization_id\"";

/// Rows that several operations of one transaction insert together on PostgreSQL, in the order in which their tables were
/// first used.
#[derive(Default)]
pub(crate) struct Pending {
    collects: bool,
    rows: Mutex<Vec<Columns>>,
    /// Number of other statements that may have changed rows.
    writes: AtomicUsize,
}

impl Pending {
    /// Creates one that collects rows.
    pub(crate) fn collecting() -> Self {
        Self { collects: true, ..Self::default() }
    }

    pub(super) const fn collects(&self) -> bool {
        self.collects
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    pub(super) fn set_writes(&self, writes: usize) {
        self.writes.store(writes, Ordering::Relaxed);
    }
}

impl Tx<'_> {
    /// Inserts rows of one organization, all or none: fewer inserted rows are an error.
    ///
    /// SQLite executes one prepared statement for each row. PostgreSQL executes one statement with an array for each column,
    /// which is prepared once for any number of rows. It reads the organization from its row, so that a PostgreSQL that is
    /// distributed over nodes executes it where that row is stored and commits in one phase. A single row is inserted by its
    /// values, so that such a PostgreSQL keeps its plan.
    pub(crate) fn insert<T, R, V>(&self, table: T, rows: impl IntoIterator<Item = R>) -> Reply<'_, usize>
    where
        T: Table + Copy + QuerySource<FromClause: QueryFragment<Db>> + 'static,
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
        let collected = rows.into_iter().map(|row| row.values().values).try_fold(None, |columns, row| {
            let mut columns = columns.map_or_else(|| Columns::new::<T, V>(table, &row, self.dialect()), Ok)?;
            columns.push(&row, self.dialect())?;
            Ok(Some(columns))
        });
        match collected.and_then(|columns: Option<Columns>| columns.ok_or(Error::NotFound)) {
            Ok(columns) => self.insert_columns(columns),
            Err(error) => Either::Left(ready(Err(error))),
        }
    }

    /// Inserts a row with those of other works that share the transaction, if there are any: before it ends, or before
    /// [`Tx::insert_pending`] for its table.
    pub(crate) fn insert_later<T, R, V>(&self, table: T, row: R) -> Reply<'_, usize>
    where
        T: Table + Copy + QuerySource<FromClause: QueryFragment<Db>> + 'static,
        R: Insertable<T, Values = ValuesClause<V, T>>,
        V: InsertValues<Db, T> + QueryId,
        InsertStatement<T, ValuesClause<V, T>>: QueryFragment<Db> + QueryId,
    {
        let Some(pending) = self.pending() else {
            return self.execute_aside(diesel::insert_into(table).values(row));
        };
        self.note_write();
        let row = row.values().values;
        let mut pending = pending.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut collect = || {
            let own = Columns::new::<T, V>(table, &row, self.dialect())?;
            let place = pending.iter().position(|other| other.text == own.text).unwrap_or(pending.len());
            if place == pending.len() {
                pending.push(own);
            }
            pending.get_mut(place).ok_or(Error::NotFound)?.push(&row, self.dialect())
        };
        Either::Left(ready(collect().map(|()| 1)))
    }

    /// Inserts the pending rows of a table, which a following statement concerns.
    pub(crate) fn insert_pending<T: 'static>(&self) -> Reply<'_, ()> {
        self.insert_pending_if(|columns| columns.table == TypeId::of::<T>())
    }

    /// Inserts all pending rows.
    pub(crate) fn insert_all_pending(&self) -> Reply<'_, ()> {
        self.insert_pending_if(|_| true)
    }

    fn insert_pending_if(&self, is_meant: impl Fn(&Columns) -> bool) -> Reply<'_, ()> {
        let Some(pending) = self.pending() else { return Either::Left(ready(Ok(()))) };
        let mut pending = pending.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let has_written = self.has_written();
        let inserts: Vec<_> =
            pending.extract_if(.., |columns| is_meant(columns)).map(|columns| self.insert_columns(columns)).collect();
        // They are rows of works that have succeeded. This one noted its own when it collected them.
        self.set_written(has_written);
        match inserts.is_empty() {
            true => Either::Left(ready(Ok(()))),
            false => Either::Right(try_join_all(inserts).map(|inserted| inserted.map(|_| ())).boxed()),
        }
    }

    fn insert_columns(&self, mut columns: Columns) -> Reply<'_, usize> {
        let count = columns.count;
        let inserted = self.run(Ok(columns.statement()));
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

/// Rows of one table and organization as arrays, one for each column.
struct Columns {
    table: TypeId,
    text: Cow<'static, str>,
    /// The place of the column that names the organization, and its value.
    organization: (usize, Vec<u8>),
    others: Vec<(Option<DbType>, ArrayBytes)>,
    count: usize,
}

impl Columns {
    fn new<T, V>(table: T, first: &V, dialect: Db) -> QueryResult<Self>
    where
        T: Table + QuerySource<FromClause: QueryFragment<Db>> + 'static,
        V: InsertValues<Db, T> + QueryId,
    {
        let render = |fragment: &dyn QueryFragment<Db>| {
            let mut text = DbQueryBuilder::new(dialect);
            fragment.to_sql(&mut text, dialect.as_static())?;
            Ok::<_, Error>(text.finish())
        };
        let names = render(&ColumnNames::<V, T>(first, PhantomData))?;
        let names: Vec<&str> = names.split(", ").collect();
        let organization = names.iter().position(|name| *name == ORGANIZATION).ok_or_else(wrong)?;
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
        let mut others = Vec::new();
        others.resize_with(names.len(), Default::default);
        Ok(Self { table: TypeId::of::<T>(), text, organization: (organization, Vec::new()), others, count: 0 })
    }

    fn push<T, V: InsertValues<Db, T>>(&mut self, row: &V, dialect: Db) -> QueryResult<()>
    where
        T: Table,
    {
        let mut binds = Binds::default();
        row.collect_binds(&mut binds, &mut (), dialect.as_static())?;
        if binds.0.len() != self.others.len() {
            return Err(wrong());
        }
        for (place, (bind, column)) in binds.0.iter().zip(&mut self.others).enumerate() {
            if place == self.organization.0 {
                let Bind::Bytes(organization) = bind.value else { return Err(wrong()) };
                if self.count == 0 {
                    self.organization.1 = organization.to_vec();
                } else if self.organization.1 != organization {
                    return Err(wrong());
                }
            } else {
                column.0 = Some(bind.of);
                column.1.push(bind.of.scalar, &bind.value).map_err(|error| Error::SerializationError(error.into()))?;
            }
        }
        self.count += 1;
        Ok(())
    }

    fn statement(&mut self) -> Statement<'_> {
        let arrays = self.others.drain(..).filter_map(|(of, elements)| Some((of?, elements)));
        let arrays = arrays.map(|(of, elements)| TypedBind { of: of.array(), value: elements.into() });
        let organization = TypedBind { of: DbType::ID, value: Bind::Bytes(&self.organization.1) };
        Statement::new(self.text.clone(), arrays.chain([organization]).collect())
    }
}

fn wrong() -> Error {
    Error::QueryBuilderError("the rows name one organization, and each column has one value".into())
}
