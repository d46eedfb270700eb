//! Severity of PostgreSQL errors. Diesel passes on the code of only a few errors. The others are recognized by their
//! English message.

use crate::failure::Severity;
use diesel::result::{DatabaseErrorKind, Error as SqlError};

const AGAIN: [&str; 3] = ["deadlock detected", "could not serialize access", "a distributed deadlock"];
const FULL: [&str; 1] = ["No space left on device"];
const LATER: [&str; 5] =
    ["canceling statement", "out of memory", "out of shared memory", "could not extend file", "could not write"];
const LATER_ELSEWHERE: [&str; 10] = [
    "terminating connection",
    "postmaster was shut down",
    // A Citus node is down or no longer has the shard.
    "could not commit transaction",
    "could not find valid entry for shard",
    "the database system is",
    "in a read-only transaction",
    "connection",
    "cached plan must not change result type",
    "prepared statement",
    "idle-in-transaction",
];

pub(super) fn classify(error: &SqlError) -> Severity {
    match error {
        SqlError::DatabaseError(kind, information) => match kind {
            DatabaseErrorKind::SerializationFailure => Severity::Again,
            // Another transaction used the idempotency key first. A retry finds its result and returns it.
            DatabaseErrorKind::UniqueViolation if information.table_name() == Some("idempotency_keys") => {
                Severity::Again
            }
            DatabaseErrorKind::ReadOnlyTransaction
            | DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::UnableToSendCommand => Severity::LaterElsewhere,
            DatabaseErrorKind::Unknown => classify_text(information.message()),
            _ => Severity::Broken,
        },
        SqlError::BrokenTransactionManager | SqlError::AlreadyInTransaction | SqlError::NotInTransaction => {
            Severity::LaterElsewhere
        }
        _ => Severity::Broken,
    }
}

fn classify_text(message: &str) -> Severity {
    let contains_any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if contains_any(&AGAIN) {
        Severity::Again
    } else if contains_any(&FULL) {
        Severity::Full
    } else if contains_any(&LATER) {
        Severity::Later
    } else if contains_any(&LATER_ELSEWHERE) {
        Severity::LaterElsewhere
    } else {
        Severity::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_citus_nodes_are_distinguished() {
        let lost = "could not commit transaction for shard 102046 on at least one active node";
        assert_eq!(classify_text(lost), Severity::LaterElsewhere, "it is not certain that nothing stands");
        assert_eq!(classify_text("postmaster was shut down, exiting"), Severity::LaterElsewhere);
        let met = "canceling the transaction since it was involved in a distributed deadlock";
        assert_eq!(classify_text(met), Severity::Again);
        assert_eq!(classify_text("column x does not exist"), Severity::Broken);
    }
}
