//! Many decisions in one transaction: each stands or falls by itself, and one sync to disk serves all.

use super::severity::{is_disk_failure, judge};
use super::statement::{Commit, Mark, ReleaseMark, Rollback, UndoToMark};
use super::task::{Ran, Task};
use crate::failure::Severity;
use diesel::result::Error as SqlError;
use diesel::{RunQueryDsl as _, SqliteConnection};

/// What a batch came to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It stands.
    Committed,
    /// One of its tasks does not stand, so nothing of it does.
    Declined,
    /// What one of its tasks read looks damaged. Nothing of it stands, and the connection is of no more use.
    Unreadable,
    /// The disk failed the commit: what it holds of the batch, and whether it will, nobody knows.
    Unsure(SqlError),
    /// Nothing of it stands: the disk has no space left.
    Full {
        /// Whether the connection is of no more use.
        lost: bool,
    },
    /// Nothing of it stands.
    Failed {
        /// Why, unless it is the failure of a task.
        error: Option<SqlError>,
        /// Whether the connection is of no more use.
        lost: bool,
    },
}

/// Runs tasks that are all expected to stand in the open transaction. Without savepoints: each would cost a
/// copy of every page that its task touches. If one of them does not stand, nothing does.
pub(super) fn run_together(connection: &mut SqliteConnection, tasks: &mut [Box<dyn Task>]) -> Outcome {
    for task in tasks {
        match task.run(connection) {
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

/// Runs tasks in the open transaction, each in its own savepoint, so that one that does not stand leaves the
/// others as they are.
pub(super) fn run_apart(connection: &mut SqliteConnection, tasks: &mut [Box<dyn Task>]) -> Outcome {
    for task in tasks {
        if let Err(error) = Mark.execute(connection) {
            return Outcome::Failed { error: Some(error), lost: true };
        }
        let kept = match task.run(connection) {
            Ran::Kept => true,
            Ran::Failed(Severity::Full) => return Outcome::Full { lost: !roll_back(connection) },
            Ran::Failed(Severity::BrokenElsewhere) => return Outcome::Unreadable,
            Ran::Failed(severity) if severity.loses_connection() => return LOST_BY_TASK,
            Ran::Undone | Ran::Failed(_) => false,
        };
        // On some failures SQLite ends the whole transaction; then there is no mark any more.
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
        Err(error) if is_disk_failure(&error) => Outcome::Unsure(error),
        Err(error) if judge(&error) == Severity::Full => Outcome::Full { lost: !roll_back(connection) },
        Err(error) => {
            let lost = !roll_back(connection) || judge(&error).loses_connection();
            Outcome::Failed { error: Some(error), lost }
        }
    }
}

/// Undoes everything. `false`: there was nothing to undo, because SQLite has ended the transaction by itself.
fn roll_back(connection: &mut SqliteConnection) -> bool {
    Rollback.execute(connection).is_ok()
}
