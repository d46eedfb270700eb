//! Errors of ports, distinguished by their cause.

use super::Event;
use crate::id::{CredentialId, KeyId};
use std::error::Error as StdError;

/// Error of the driver, for logs.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A store could not carry out a transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk of the database has no space left. Nothing was changed, and nothing that has to be recorded first is
    /// possible, such as an activation.
    #[error("no space left on device: free space on the disk of the database, then writes resume automatically")]
    Full,
    /// The database is unreachable, locked or overloaded. A retry may succeed. If the response of a transaction
    /// was lost, it may have been committed.
    #[error("the database is unavailable")]
    Unavailable(#[source] Cause),
    /// A row cannot be decoded, or its MAC does not verify.
    #[error("row {id} of table {table} is damaged: {reason}")]
    Integrity {
        /// The table.
        table: &'static str,
        /// ID of the row.
        id: String,
        /// The violation, never a value.
        reason: &'static str,
    },
    /// An error of the adapter or its configuration.
    #[error("the database failed")]
    Fault(#[source] Cause),
}

/// Encryption or decryption failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The sealed value is damaged, was moved, or uses an unknown key.
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
    /// The row names a key that its organization does not have. Either the key was destroyed by a rotation after the
    /// row was read, which must be read again, or the row is damaged.
    #[error("row {object} of table {table} is damaged: {column}: key {key} does not exist")]
    UnknownKey {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// ID of the row.
        object: String,
        /// ID of the key in the row.
        key: KeyId,
    },
    /// Keys could not be read or reserved.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the adapter, including missing randomness of the operating system.
    #[error("sealing failed")]
    Fault(#[source] Cause),
}

impl SealError {
    /// Returns the event that a stored row does not open.
    pub(crate) fn event(&self) -> Option<Event> {
        match self {
            Self::Integrity { table, object, .. } | Self::UnknownKey { table, object, .. } => {
                Some(Event::IntegrityFailure { table, id: object.clone() })
            }
            Self::Store(_) | Self::Fault(_) => None,
        }
    }

    /// Creates the error for a credential that is older than the audit log records.
    pub(crate) fn rolled_back_credential(id: CredentialId) -> Self {
        let reason = "older than the audit log records: the row was put back outside the service";
        Self::Integrity { table: "credentials", column: "card", object: id.to_string(), reason }
    }

    /// Creates the error for a credential whose columns differ from its card, because they were changed outside the service.
    pub(crate) fn changed_credential(id: CredentialId) -> Self {
        let reason = "differs from the columns of its row, which were modified outside the service";
        Self::Integrity { table: "credentials", column: "card", object: id.to_string(), reason }
    }
}

/// A password could not be hashed or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// No slot in the hash queue is free for this requester.
    #[error("too many logins in progress")]
    Busy,
    /// The operating system has no memory for the hash. A retry may succeed.
    #[error("no memory for a password hash, which needs {bytes} bytes: increase the memory of the process")]
    NoMemory {
        /// Requested memory in bytes.
        bytes: usize,
    },
    /// An error of the adapter.
    #[error("password hashing failed")]
    Fault(#[source] Cause),
}

/// Reason why a token is refused, for logs. The response is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// The token is malformed or too long.
    #[error("malformed")]
    Malformed,
    /// The key of the token is unknown.
    #[error("unknown key")]
    UnknownKey,
    /// The token cannot be decrypted with its key.
    #[error("not authentic")]
    NotAuthentic,
    /// The token is authentic, but a claim is missing, malformed, duplicate or for another instance.
    #[error("invalid claims")]
    Claims,
    /// The token has expired.
    #[error("expired")]
    Expired,
    /// The token was issued in the future.
    #[error("not yet valid")]
    NotYetValid,
}
