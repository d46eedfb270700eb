//! How ports fail, by whose fault it is.

use crate::error::Refusal;
use crate::id::{CredentialId, KeyId};
use crate::principal::Denial;
use std::error::Error as StdError;

/// The driver's error, kept for the log.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A store could not carry a decision out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The principal may not act. Nothing was changed.
    #[error(transparent)]
    Denied(Denial),
    /// A rule of the decision forbids it. Nothing was changed, except what the method says.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database is unreachable, full, locked or overloaded; a retry may succeed. Nothing was acknowledged, but a
    /// decision whose answer was lost may have been made.
    #[error("the database is unavailable")]
    Unavailable(#[source] Cause),
    /// A row does not decode or does not fit its code.
    #[error("row {id} of table {table} is damaged: {reason}")]
    Integrity {
        /// The table.
        table: &'static str,
        /// ID of the row.
        id: String,
        /// The violation, never a value.
        reason: &'static str,
    },
    /// A fault of the adapter or its set-up.
    #[error("the database failed")]
    Fault(#[source] Cause),
}

/// Sealing or opening failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The organization has no keys: it was deleted.
    #[error("the organization has no keys")]
    NoKeys,
    /// What was to be opened is damaged, moved, or sealed under an unknown key.
    #[error("row {object} of table {table} is damaged: {column}: {reason}")]
    Integrity {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// ID of the row.
        object: String,
        /// The violation, never a value.
        reason: &'static str,
    },
    /// The row names a key that its organization does not have. Either the key was destroyed after a rotation, and the row
    /// was read before: read it again. Or the row is damaged.
    #[error("row {object} of table {table} is damaged: {column}: key {key} does not exist")]
    UnknownKey {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// ID of the row.
        object: String,
        /// The key that the row names.
        key: KeyId,
    },
    /// Keys could not be read or taken.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A fault of the adapter, the operating system's entropy included.
    #[error("sealing failed")]
    Fault(#[source] Cause),
}

impl SealError {
    /// The code over a credential's row is wrong: the row was changed outside the service.
    pub(crate) fn unsound_credential(id: CredentialId) -> Self {
        let reason = "it does not fit the row, which was changed outside the service";
        Self::Integrity { table: "credentials", column: "code", object: id.to_string(), reason }
    }
}

/// A password could not be hashed or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// No seat in the queue is left for this requester.
    #[error("too many logins in progress")]
    Busy,
    /// The operating system gives no memory for the hash: later may work.
    #[error("no memory for a password hash, which takes {bytes} bytes: give the process more, or end others")]
    NoMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// A fault of the adapter.
    #[error("password hashing failed")]
    Fault(#[source] Cause),
}

/// Why a token is refused, for the log; the response is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// Not of the form of a token, or too long.
    #[error("malformed")]
    Malformed,
    /// Names a key that is not ours.
    #[error("unknown key")]
    UnknownKey,
    /// Does not open under its key.
    #[error("not authentic")]
    NotAuthentic,
    /// Authentic, but a claim is missing, malformed, doubled or not for us.
    #[error("invalid claims")]
    Claims,
    /// Expired.
    #[error("expired")]
    Expired,
    /// Issued in the future.
    #[error("not yet valid")]
    NotYetValid,
}

impl From<Denial> for StoreError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}
