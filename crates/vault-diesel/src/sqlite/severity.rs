//! Severity of SQLite errors. Diesel passes on only the message, so errors are recognized by the texts of
//! `sqlite3_errstr`, which SQLite keeps stable.

use crate::failure::Severity;
use diesel::result::Error as SqlError;

const FULL: [&str; 2] = ["database or disk is full", "No space left on device"];
const LATER: [&str; 7] = [
    "database is locked",
    "database table is locked",
    "database schema is locked",
    "attempt to write a readonly database",
    "unable to open database file",
    "locking protocol",
    "interrupted",
];
const DISK_FAILURE: &str = "disk I/O error";
const LATER_ELSEWHERE: [&str; 2] = [DISK_FAILURE, "out of memory"];
const BROKEN_ELSEWHERE: [&str; 2] = ["database disk image is malformed", "file is not a database"];

pub(super) fn classify(error: &SqlError) -> Severity {
    let SqlError::DatabaseError(_, information) = error else { return Severity::Broken };
    let message = information.message();
    let contains_any = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if contains_any(&BROKEN_ELSEWHERE) {
        Severity::BrokenElsewhere
    } else if contains_any(&FULL) {
        Severity::Full
    } else if contains_any(&LATER_ELSEWHERE) {
        Severity::LaterElsewhere
    } else if contains_any(&LATER) {
        Severity::Later
    } else {
        Severity::Broken
    }
}

/// Returns whether another connection has the write lock.
pub(super) fn is_locked(error: &SqlError) -> bool {
    matches!(error, SqlError::DatabaseError(_, information) if information.message().contains("is locked"))
}

/// Returns whether the disk failed. A full disk is a different error.
pub(super) fn is_disk_failure(error: &SqlError) -> bool {
    matches!(error, SqlError::DatabaseError(_, information) if information.message().contains(DISK_FAILURE))
}

/// Returns whether the disk is full.
pub(super) fn is_full(error: &SqlError) -> bool {
    classify(error) == Severity::Full
}
