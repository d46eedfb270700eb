//! Envelope of a change whose audit record was made before its transaction.

use crate::audit::SealedAuditRecord;
use crate::principal::Principal;
use crate::time::Timestamp;

/// A change with its principal, time and audit record.
///
/// Its operation authorizes [`Command::principal`] before `payload` and appends [`Command::audit`] after it. It records nothing
/// if `payload` changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<A, P = Principal> {
    /// Principal that makes the request.
    pub principal: P,
    /// Current time.
    pub now: Timestamp,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
    /// The change.
    pub payload: A,
}
