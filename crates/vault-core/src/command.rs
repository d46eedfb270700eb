//! The envelope of a decision that changes something.

use crate::audit::SealedAuditRecord;
use crate::principal::Principal;
use crate::time::Timestamp;

/// A change, with what every change needs: who asks, when, and the audit record.
///
/// A store checks [`Command::principal`] before `act` and appends [`Command::audit`] after it, in one transaction. A
/// principal that may not act is refused with [`StoreError::Denied`](crate::port::StoreError::Denied); nothing is
/// written then, and nothing is recorded where `act` changes nothing.
#[derive(Clone, Debug)]
pub struct Command<A, P = Principal> {
    /// Principal that makes the request.
    pub principal: P,
    /// Current time.
    pub now: Timestamp,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
    /// The change.
    pub act: A,
}
