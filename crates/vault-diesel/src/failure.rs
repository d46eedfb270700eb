//! Failures of transactions, and the port errors that callers get for them.

use diesel::result::Error as SqlError;
use std::sync::{Arc, OnceLock};
use vault_core::port::{Event, EventSink, StoreError};

/// Failure of a transaction. Nothing of it is committed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database returned an error, or the connection was lost.
    Sql(SqlError),
    /// A row has content that this crate never writes.
    Damaged { table: &'static str, id: String, reason: &'static str },
    /// Rows changed while the transaction read them. It can be retried immediately.
    Overtaken,
}

/// Consequence of a database error for the transaction and its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The transaction conflicted with another one. It can be retried immediately.
    Again,
    /// A later retry may succeed.
    Later,
    /// The disk is full. A later retry may succeed.
    Full,
    /// A later retry on another connection may succeed.
    LaterElsewhere,
    /// Waiting does not help, and the connection must be replaced.
    BrokenElsewhere,
    /// Waiting does not help.
    Broken,
}

impl Severity {
    /// Returns whether the connection must be replaced.
    pub(crate) const fn loses_connection(self) -> bool {
        matches!(self, Self::LaterElsewhere | Self::BrokenElsewhere)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl Failure {
    pub(crate) const fn damaged(table: &'static str, id: String, reason: &'static str) -> Self {
        Self::Damaged { table, id, reason }
    }

    /// Returns the severity. `classify` classifies errors of the database.
    pub(crate) fn severity(&self, classify: fn(&SqlError) -> Severity) -> Severity {
        match self {
            Self::Sql(error) => classify(error),
            Self::Damaged { .. } => Severity::Broken,
            Self::Overtaken => Severity::Again,
        }
    }

    /// Converts the failure to the error of the port. `classify` classifies errors of the database.
    pub(crate) fn into_store_error(self, classify: fn(&SqlError) -> Severity) -> StoreError {
        match self {
            Self::Damaged { table, id, reason } => StoreError::Integrity { table, id, reason },
            Self::Overtaken => unavailable("rows changed while they were read"),
            Self::Sql(SqlError::DeserializationError(_)) => StoreError::Integrity {
                table: "unknown",
                id: "unknown".to_owned(),
                reason: "a column does not have its type",
            },
            Self::Sql(error) => match classify(&error) {
                Severity::Full => StoreError::Full,
                Severity::Again | Severity::Later | Severity::LaterElsewhere => {
                    StoreError::Unavailable(Box::new(error))
                }
                Severity::Broken | Severity::BrokenElsewhere if lacks_right(&error) => {
                    StoreError::Fault(Box::new(RightMissing(error)))
                }
                Severity::Broken | Severity::BrokenElsewhere => StoreError::Fault(Box::new(error)),
            },
        }
    }
}

/// The database role lacks a privilege. PostgreSQL's message names the table or schema.
#[derive(Debug, thiserror::Error)]
#[error("{}. {}", .0, remedy(.0))]
struct RightMissing(SqlError);

/// Returns what the operator should do. The role of the server never gets the privileges to change the keys of the
/// deployment.
fn remedy(error: &SqlError) -> &'static str {
    match error.to_string().ends_with("for table instance") {
        true => "Run this command as the role that owns the tables: only it changes the keys of the deployment",
        false => {
            "Grant the role its rights with postgresql-grants.sql (docs/operate/postgresql.md, \"Least-privilege roles\"), or run init \
             and migrate as the owner of the tables"
        }
    }
}

fn lacks_right(error: &SqlError) -> bool {
    let SqlError::DatabaseError(_, information) = error else { return false };
    ["permission denied for ", "must be owner of "].iter().any(|start| information.message().starts_with(start))
}

/// Reports what transactions reveal about the store.
#[derive(Default)]
pub(crate) struct Reports {
    events: OnceLock<Arc<dyn EventSink>>,
}

impl Reports {
    pub(crate) fn to(&self, events: Arc<dyn EventSink>) {
        let _ = self.events.set(events); // the first sink stays
    }

    /// Emits an event, if a sink is set.
    pub(crate) fn report(&self, event: Event) {
        if let Some(events) = self.events.get() {
            events.emit(event);
        }
    }

    /// Returns the outcome unchanged, after reporting a damaged row.
    pub(crate) fn seen<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Integrity { table, id, .. }) = &outcome {
            self.report(Event::IntegrityFailure { table, id: id.clone() });
        }
        outcome
    }
}

/// An error message for a failure without a driver error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Reason(pub(crate) &'static str);

/// Returns the error for a store that is temporarily unavailable.
pub(crate) fn unavailable(reason: &'static str) -> StoreError {
    StoreError::Unavailable(Box::new(Reason(reason)))
}

/// Returns the error for a failure that a retry cannot fix.
pub(crate) fn fault(reason: &'static str) -> StoreError {
    StoreError::Fault(Box::new(Reason(reason)))
}
