//! Statements around transactions, as query fragments with an ID. They are prepared once per connection, whereas Diesel
//! would otherwise parse them each time.

use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, RunQueryDsl};

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, QueryId)]
        pub(super) struct $name;

        impl<C> RunQueryDsl<C> for $name {}

        impl QueryFragment<Sqlite> for $name {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
                out.push_sql($sql);
                Ok(())
            }
        }
    )*};
}

statements! {
    /// Starts a snapshot for several reads.
    BeginSnapshot = "BEGIN";
    /// Starts a transaction and acquires the write lock.
    BeginWriting = "BEGIN IMMEDIATE";
    /// Commits the transaction.
    Commit = "COMMIT";
    /// Rolls back the transaction.
    Rollback = "ROLLBACK";
    /// Sets the savepoint of one task of a batch.
    Mark = "SAVEPOINT decision";
    /// Rolls back one task.
    UndoToMark = "ROLLBACK TO decision";
    /// Releases the savepoint of one task.
    ReleaseMark = "RELEASE decision";
}
