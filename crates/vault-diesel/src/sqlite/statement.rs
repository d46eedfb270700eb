//! The statements around decisions, as fragments with an id: prepared once per connection, where Diesel would
//! parse them anew each time.

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
    /// One snapshot for several reads.
    BeginSnapshot = "BEGIN";
    /// Takes the file for writing at once.
    BeginWriting = "BEGIN IMMEDIATE";
    /// Makes everything stand.
    Commit = "COMMIT";
    /// Undoes everything.
    Rollback = "ROLLBACK";
    /// Where one decision of a batch begins.
    Mark = "SAVEPOINT decision";
    /// Undoes one decision.
    UndoToMark = "ROLLBACK TO decision";
    /// One decision is through.
    ReleaseMark = "RELEASE decision";
}
