//! The list of the principal's sessions.

use super::StoredSession;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::principal::SessionPrincipal;

/// Lists the unexpired sessions of the principal's account, newest first. Sessions of the same time are ordered by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSessions(pub SessionPrincipal);

impl Operation for ListSessions {
    type Outcome = Vec<StoredSession>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredSession>, Failure> {
        unit.authorized(unit.rows().active_sessions((self.0.organization, self.0.account), unit.now())).await
    }
}
