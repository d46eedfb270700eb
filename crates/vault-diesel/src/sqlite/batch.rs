//! Batches of tasks in one transaction with one sync to disk. A task that fails or is undone does not affect the
//! others.

use super::severity::{classify, is_disk_failure};
use super::statement::{Commit, Mark, ReleaseMark, Rollback, UndoToMark};
use super::task::{Ran, Task};
use crate::failure::Severity;
use crate::rows::Kept;
use diesel::result::Error as SqlError;
use diesel::{RunQueryDsl as _, SqliteConnection};

/// Outcome of a batch.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The batch is committed.
    Committed,
    /// A task failed or was undone, so the whole batch was rolled back.
    Declined,
    /// A task read data that looks damaged. Nothing is committed, and the connection must be replaced.
    Unreadable,
    /// The disk failed the commit. Whether the batch is or will be durable is unknown.
    Indeterminate(SqlError),
    /// The disk is full. Nothing is committed.
    Full {
        /// Whether the connection must be replaced.
        lost: bool,
    },
    /// Nothing is committed.
    Failed {
        /// The error, or `None` if a task failed.
        error: Option<SqlError>,
        /// Whether the connection must be replaced.
        lost: bool,
    },
}

/// Runs tasks in the open transaction without savepoints. A savepoint costs a copy of every page that its task changes,
/// and most tasks succeed. If one task fails or is undone, the whole transaction is rolled back.
pub(super) fn run_together(connection: &mut SqliteConnection, tasks: &mut [Task]) -> Outcome {
    let kept = Kept::default();
    for task in tasks {
        match task.run(connection, &kept) {
            Ran::Kept => {}
            Ran::Failed(Severity::Full) => return Outcome::Full { lost: !roll_back(connection) },
            Ran::Failed(Severity::BrokenElsewhere) => return Outcome::Unreadable,
            Ran::Failed(severity) if severity.loses_connection() => return LOST_BY_TASK,
            Ran::Undone | Ran::Failed(_) => {
                return match roll_back(connection) {
                    true => Outcome::Declined,
                    false => LOST_BY_TASK,
                };
            }
        }
    }
    commit(connection)
}

/// Runs each task in its own savepoint of the open transaction, so that one that fails or is undone does not affect the
/// others.
pub(super) fn run_apart(connection: &mut SqliteConnection, tasks: &mut [Task]) -> Outcome {
    for task in tasks {
        if let Err(error) = Mark.execute(connection) {
            return Outcome::Failed { error: Some(error), lost: true };
        }
        let kept = match task.run(connection, &Kept::default()) {
            Ran::Kept => true,
            Ran::Failed(Severity::Full) => return Outcome::Full { lost: !roll_back(connection) },
            Ran::Failed(Severity::BrokenElsewhere) => return Outcome::Unreadable,
            Ran::Failed(severity) if severity.loses_connection() => return LOST_BY_TASK,
            Ran::Undone | Ran::Failed(_) => false,
        };
        // On some errors SQLite rolls back the whole transaction, and the savepoint no longer exists.
        let undone = kept || UndoToMark.execute(connection).is_ok();
        if !undone || ReleaseMark.execute(connection).is_err() {
            return LOST_BY_TASK;
        }
    }
    commit(connection)
}

const LOST_BY_TASK: Outcome = Outcome::Failed { error: None, lost: true };

fn commit(connection: &mut SqliteConnection) -> Outcome {
    match Commit.execute(connection) {
        Ok(_) => Outcome::Committed,
        Err(error) if is_disk_failure(&error) => Outcome::Indeterminate(error),
        Err(error) if classify(&error) == Severity::Full => Outcome::Full { lost: !roll_back(connection) },
        Err(error) => {
            let lost = !roll_back(connection) || classify(&error).loses_connection();
            Outcome::Failed { error: Some(error), lost }
        }
    }
}

/// Rolls back the transaction. Returns `false` if none was open, because SQLite had already rolled it back.
fn roll_back(connection: &mut SqliteConnection) -> bool {
    Rollback.execute(connection).is_ok()
}
