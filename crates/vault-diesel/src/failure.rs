//! How a decision fails, and what its caller is told of it.

use diesel::result::Error as SqlError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use vault_core::Refusal;
use vault_core::port::{Event, EventSink, StoreError};
use vault_core::principal::Denial;

/// A decision could not be made. Nothing of it stands.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The principal may not act. Found before the first write.
    Denied(Denial),
    /// A rule that several decisions share forbids it.
    Refused(Refusal),
    /// The database refused or went away.
    Sql(SqlError),
    /// A row is not what this crate writes.
    Damaged { table: &'static str, id: String, reason: &'static str },
    /// Rows changed while they were read; the same decision may be made again at once.
    Overtaken,
}

/// What a database's error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Two transactions met: the same decision may be made again at once.
    Again,
    /// Later may work.
    Later,
    /// The disk has no space left: later may work.
    Full,
    /// Later may work, on another connection.
    LaterElsewhere,
    /// Will not work by waiting; the connection is of no more use.
    BrokenElsewhere,
    /// Will not work by waiting.
    Broken,
}

impl Severity {
    /// Whether the connection must be replaced.
    pub(crate) const fn loses_connection(self) -> bool {
        matches!(self, Self::LaterElsewhere | Self::BrokenElsewhere)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<Denial> for Failure {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Failure {
    pub(crate) const fn damaged(table: &'static str, id: String, reason: &'static str) -> Self {
        Self::Damaged { table, id, reason }
    }

    /// The same for another command that it concerns. An error of the database concerns a whole transaction, which is
    /// decided again.
    pub(crate) fn repeated(&self) -> Self {
        match self {
            Self::Denied(denial) => Self::Denied(*denial),
            Self::Refused(refusal) => Self::Refused(refusal.clone()),
            Self::Damaged { table, id, reason } => Self::Damaged { table, id: id.clone(), reason },
            Self::Sql(_) | Self::Overtaken => Self::Overtaken,
        }
    }

    /// What it means, by the database's own judgement of its errors.
    pub(crate) fn severity(&self, judge: fn(&SqlError) -> Severity) -> Severity {
        match self {
            Self::Sql(error) => judge(error),
            Self::Denied(_) | Self::Refused(_) | Self::Damaged { .. } => Severity::Broken,
            Self::Overtaken => Severity::Again,
        }
    }

    /// What the port says of it.
    pub(crate) fn into_store_error(self, judge: fn(&SqlError) -> Severity) -> StoreError {
        match self {
            Self::Denied(denial) => StoreError::Denied(denial),
            Self::Refused(refusal) => StoreError::Refused(refusal),
            Self::Damaged { table, id, reason } => StoreError::Integrity { table, id, reason },
            Self::Overtaken => unavailable("rows changed while they were read"),
            Self::Sql(SqlError::DeserializationError(_)) => StoreError::Integrity {
                table: "unknown",
                id: "unknown".to_owned(),
                reason: "a column does not hold its type",
            },
            Self::Sql(error) => match judge(&error) {
                Severity::Full => no_space(),
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

/// The outcome of a transaction, or why it was denied or refused.
pub(crate) fn flat<T>(
    outcome: Result<Result<T, Failure>, StoreError>,
    judge: fn(&SqlError) -> Severity,
) -> Result<T, StoreError> {
    outcome?.map_err(|failure| failure.into_store_error(judge))
}

/// The database's role lacks a right. PostgreSQL's message names the table or schema.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}. Grant the role its rights with postgresql-grants.sql (docs/operate/postgresql.md, \"Least-privilege roles\"), or run init and \
         migrate as the owner of the tables"
)]
struct RightMissing(SqlError);

fn lacks_right(error: &SqlError) -> bool {
    let SqlError::DatabaseError(_, information) = error else { return false };
    ["permission denied for ", "must be owner of "].iter().any(|start| information.message().starts_with(start))
}

/// What the outcomes of decisions tell of the store: damaged rows are counted and logged, once it is known where, and a
/// full disk is remembered.
#[derive(Default)]
pub(crate) struct Reports {
    events: OnceLock<Arc<dyn EventSink>>,
    full: AtomicBool,
}

impl Reports {
    pub(crate) fn to(&self, events: Arc<dyn EventSink>) {
        let _ = self.events.set(events); // the first one stays
    }

    /// Has an event counted or logged, if anybody does.
    pub(crate) fn tell(&self, event: Event) {
        if let Some(events) = self.events.get() {
            events.emit(event);
        }
    }

    /// The outcome of a decision, reported if it tells of a damaged row.
    pub(crate) fn seen<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        match &outcome {
            Err(StoreError::Integrity { table, id, .. }) => {
                self.tell(Event::IntegrityFailure { table, id: id.clone() });
            }
            Err(StoreError::Unavailable(cause)) if cause.is::<NoSpace>() => self.full.store(true, Ordering::Relaxed),
            _ => {}
        }
        outcome
    }

    /// Whether a decision failed for want of space since [`Reports::has_space`]. Others that succeeded meanwhile prove
    /// nothing: some write nothing, or little.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Space was found to be left.
    pub(crate) fn has_space(&self) {
        self.full.store(false, Ordering::Relaxed);
    }
}

/// A reason in words, for what has no error of a driver behind it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Reason(pub(crate) &'static str);

/// The disk of the database has no space left.
#[derive(Debug, thiserror::Error)]
#[error("no space left on device: free space on the disk of the database, then writes resume by themselves")]
pub(crate) struct NoSpace;

/// The disk of the database has no space left.
pub(crate) fn no_space() -> StoreError {
    StoreError::Unavailable(Box::new(NoSpace))
}

/// The store cannot be reached for now.
pub(crate) fn unavailable(reason: &'static str) -> StoreError {
    StoreError::Unavailable(Box::new(Reason(reason)))
}

/// The store failed in a way that waiting does not mend.
pub(crate) fn fault(reason: &'static str) -> StoreError {
    StoreError::Fault(Box::new(Reason(reason)))
}
