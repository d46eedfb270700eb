//! Many decisions in one transaction: each stands or falls by itself, and one sync to disk serves all.

use super::backend::RunQuery as _;
use super::severity::judge;
use super::statement::{Commit, Mark, ReleaseMark, Rollback, UndoToMark};
use super::task::{Ran, Task};
use diesel::SqliteConnection;

/// What a batch came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It stands.
    Committed,
    /// One of its tasks does not stand, so nothing of it does.
    Declined,
    /// Nothing of it stands, by no fault of its tasks.
    Failed,
    /// Nothing of it stands, and the connection is of no more use.
    Lost,
}

/// Runs tasks that are all expected to stand in the open transaction. Without savepoints: each would cost a
/// copy of every page that its task touches. If one of them does not stand, nothing does.
pub(super) fn run_together(connection: &mut SqliteConnection, tasks: &mut [Box<dyn Task>]) -> Outcome {
    for task in tasks {
        match task.run(connection) {
            Ran::Kept => {}
            Ran::Failed(severity) if severity.loses_connection() => return Outcome::Lost,
            Ran::Undone | Ran::Failed(_) => return roll_back(connection, Outcome::Declined),
        }
    }
    commit(connection)
}

/// Runs tasks in the open transaction, each in its own savepoint, so that one that does not stand leaves the
/// others as they are.
pub(super) fn run_apart(connection: &mut SqliteConnection, tasks: &mut [Box<dyn Task>]) -> Outcome {
    for task in tasks {
        if Mark.execute(connection).into_inner().is_err() {
            return Outcome::Lost;
        }
        let kept = match task.run(connection) {
            Ran::Kept => true,
            Ran::Undone => false,
            Ran::Failed(severity) if severity.loses_connection() => return Outcome::Lost,
            Ran::Failed(_) => false,
        };
        // On some failures (a full disk) SQLite ends the whole transaction; then there is no mark any more.
        if (!kept && UndoToMark.execute(connection).into_inner().is_err())
            || ReleaseMark.execute(connection).into_inner().is_err()
        {
            return Outcome::Lost;
        }
    }
    commit(connection)
}

fn commit(connection: &mut SqliteConnection) -> Outcome {
    match Commit.execute(connection).into_inner() {
        Ok(_) => Outcome::Committed,
        Err(error) => {
            tracing::error!(error = %error, "a batch could not be committed");
            let outcome = roll_back(connection, Outcome::Failed);
            if judge(&error).loses_connection() { Outcome::Lost } else { outcome }
        }
    }
}

fn roll_back(connection: &mut SqliteConnection, outcome: Outcome) -> Outcome {
    // Where SQLite has ended the transaction by itself there is nothing to roll back, and it says so.
    match Rollback.execute(connection).into_inner() {
        Ok(_) => outcome,
        Err(_) => Outcome::Lost,
    }
}
