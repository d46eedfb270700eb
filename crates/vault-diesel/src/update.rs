//! `UPDATE` statements that a connection prepares once.
//!
//! Diesel prepares each `UPDATE` anew, because its columns may differ from call to call. Those of the decisions do not, or
//! take a few forms; to prepare one costs as much as to carry it out.

use diesel::backend::Backend;
use diesel::query_builder::{AsChangeset, AsQuery, AstPass, IntoUpdateTarget, QueryFragment, QueryId, UpdateStatement};
use diesel::{QueryResult, QuerySource, Table};

/// An `UPDATE` of `target`. Its text must take one of a few forms: a connection keeps each of them prepared until it ends.
/// A list of any length (`eq_any`) makes a form of each length on SQLite.
pub(crate) fn update<Target>(target: Target) -> Update<Target::Table, Target::WhereClause>
where
    Target: IntoUpdateTarget<Table: QuerySource>,
{
    Update(diesel::update(target))
}

/// An `UPDATE` that does not say yet what it sets.
pub(crate) struct Update<T: QuerySource, Where>(UpdateStatement<T, Where>);

impl<T: Table, Where> Update<T, Where> {
    /// Says what it sets.
    pub(crate) fn set<Values>(self, values: Values) -> PreparedOnce<UpdateStatement<T, Where, Values::Changeset>>
    where
        Values: AsChangeset<Target = T>,
        UpdateStatement<T, Where, Values::Changeset>: AsQuery,
    {
        PreparedOnce(self.0.set(values))
    }
}

/// A statement that its connection finds by its text when it carries it out again.
pub(crate) struct PreparedOnce<Statement>(Statement);

impl<Statement> QueryId for PreparedOnce<Statement> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Backend, Statement: QueryFragment<DB>> QueryFragment<DB> for PreparedOnce<Statement> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }

    fn is_safe_to_cache_prepared(&self, _backend: &DB) -> QueryResult<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::update;
    use crate::schema::credential_counts;
    use crate::sqlite::backend::RunQuery as _;
    use diesel::connection::{InstrumentationEvent, SimpleConnection as _};
    use diesel::{Connection as _, ExpressionMethods as _, QueryDsl as _, SqliteConnection};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_update_is_prepared_once() {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        connection.batch_execute("CREATE TABLE credential_counts (organization_id TEXT, credentials BIGINT)").unwrap();
        let kept = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&kept);
        connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        for number in 1..=3 {
            let row = credential_counts::table.filter(credential_counts::organization_id.eq(format!("{number}")));
            update(row).set(credential_counts::credentials.eq(number)).execute(&mut connection).into_inner().unwrap();
        }
        assert_eq!(AtomicUsize::load(&kept, Ordering::Relaxed), 1, "one text, kept");
    }
}
