//! `UPDATE` statements that a connection prepares once.
//!
//! Diesel prepares each `UPDATE` anew, because its columns may differ from call to call. Those of the decisions do not, or
//! take a few forms.

use diesel::backend::Backend;
use diesel::query_builder::{AsChangeset, AstPass, IntoUpdateTarget, QueryFragment, QueryId};
use diesel::{QueryResult, QuerySource, Table};

/// An `UPDATE` of `target`. Its text should take one of a few forms: a connection keeps each of them prepared until it ends.
pub(crate) fn update<Target>(target: Target) -> Update<<Target::Table as QuerySource>::FromClause, Target::WhereClause>
where
    Target: IntoUpdateTarget<Table: Table>,
{
    let target = target.into_update_target();
    Update { table: target.table.from_clause(), filter: target.where_clause, changes: () }
}

/// An `UPDATE`, and what it sets.
pub(crate) struct Update<From, Where, Changes = ()> {
    table: From,
    filter: Where,
    changes: Changes,
}

impl<From, Where> Update<From, Where> {
    /// Says what it sets.
    pub(crate) fn set<Values>(self, values: Values) -> Update<From, Where, Values::Changeset>
    where
        Values: AsChangeset<Target: QuerySource<FromClause = From>>,
    {
        Update { table: self.table, filter: self.filter, changes: values.as_changeset() }
    }
}

impl<From, Where, Changes> QueryId for Update<From, Where, Changes> {
    type QueryId = ();
    // A connection finds it by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB, From, Where, Changes> QueryFragment<DB> for Update<From, Where, Changes>
where
    DB: Backend,
    From: QueryFragment<DB>,
    Where: QueryFragment<DB>,
    Changes: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("UPDATE ");
        self.table.walk_ast(out.reborrow())?;
        out.push_sql(" SET ");
        self.changes.walk_ast(out.reborrow())?;
        self.filter.walk_ast(out.reborrow())
    }
}

#[cfg(test)]
mod tests {
    use super::update;
    use crate::schema::credential_counts;
    use crate::sqlite::backend::RunQuery as _;
    use crate::stored::StoredId as _;
    use diesel::connection::{InstrumentationEvent, SimpleConnection as _};
    use diesel::{Connection as _, ExpressionMethods as _, QueryDsl as _, SqliteConnection};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use vault_core::id::OrganizationId;

    #[test]
    fn an_update_is_prepared_once() {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        connection.batch_execute("CREATE TABLE credential_counts (organization_id UUID, credentials BIGINT)").unwrap();
        let kept = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&kept);
        connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        for number in 1..=3_u8 {
            let row = credential_counts::table
                .filter(credential_counts::organization_id.eq(OrganizationId::from_bytes([number; 16]).stored()));
            update(row)
                .set(credential_counts::credentials.eq(i64::from(number)))
                .execute(&mut connection)
                .into_inner()
                .unwrap();
        }
        assert_eq!(AtomicUsize::load(&kept, Ordering::Relaxed), 1, "one text, kept");
    }
}
