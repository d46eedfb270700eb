//! Envelope of a transaction that changes something.

use crate::audit::SealedAuditRecord;
use crate::principal::Principal;
use crate::time::Timestamp;

/// A change with its principal, time and audit record.
///
/// A store authorizes [`Command::principal`] before `payload` and appends [`Command::audit`] after it, in one transaction.
/// It refuses an unauthorized principal with [`StoreError::Denied`](crate::port::StoreError::Denied) and writes
/// nothing. It records nothing if `payload` changes nothing.
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
