//! The end of a session.

use crate::audit::{AuditAction, Subject};
use crate::id::{OrganizationId, SessionId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::principal::{Denial, Principal};

/// Permanently ends a session of the principal's account, possibly its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndSession {
    /// Organization of the principal.
    pub organization: OrganizationId,
    /// Session to end.
    pub session: SessionId,
}

impl Operation for EndSession {
    /// `false` if the account has no such active session. If calls that end their own session race, exactly one
    /// succeeds. The others are denied.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let Self { organization, session } = *self;
        let Principal::Session(own) = unit.principal() else { return Err(Denial::InsufficientRole.into()) };
        unit.authorize().await?;
        let active = unit.rows().active_sessions((organization, own.account), unit.now()).await?;
        if !active.iter().any(|stored| stored.session.id == session) {
            return Ok(false);
        }
        let action = if session == own.session { AuditAction::LoggedOut } else { AuditAction::SessionEnded };
        let ending = unit.rows().remove_session(organization, session);
        unit.write_and_record(ending, Some(organization), action, Subject::Session(session).into()).await?;
        Ok(true)
    }
}
