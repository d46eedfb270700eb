//! Changes of invitations.

use crate::account::changes;
use crate::audit::{AuditAction, RecordedRow, RowState, Subject};
use crate::error::Refusal;
use crate::id::{AccountId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::role::Role;

/// Change of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvitationChange {
    /// New role. Enrolment code, draft and expiry are unchanged.
    Role(Role),
    /// Deletes the invitation and its draft.
    Delete,
}

/// Changes an open or expired invitation.
///
/// # Errors
/// - [`Refusal::NotFound`]: the principal may not see such an invitation, or it does not exist.
/// - [`Refusal::Contended`]: the row has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeInvitation {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to create.
    pub account: AccountId,
    /// Version that the change is based on. To change the role, the MAC of the row verified.
    pub version: i64,
    /// The change.
    pub change: InvitationChange,
}

impl Operation for ChangeInvitation {
    type Outcome = ();
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let (rows, Self { organization, account, .. }) = (unit.rows(), self);
        unit.authorize().await?;
        if !unit.principal().reaches(*organization) {
            return Err(Refusal::NotFound.into());
        }
        let stored = rows.invitation((*organization, *account)).await?.ok_or(Refusal::NotFound)?;
        if stored.version != self.version {
            return Err(Refusal::Contended.into());
        }
        let subject = Subject::Account(*account);
        let (action, affected) = match self.change {
            InvitationChange::Role(role) => {
                let after = stored.with_role(role, unit.digester());
                unit.require_active_key(after.digest.key).await?;
                rows.update_invitation(&after).await?;
                let left = subject.left(RecordedRow::Invitation, after.state(unit.digester()));
                let changes = changes(&stored.invitation.grant, &after.invitation.grant);
                (AuditAction::InvitationChanged, left.changing(changes))
            }
            InvitationChange::Delete => {
                rows.remove_invitation(&stored).await?;
                (AuditAction::InvitationDeleted, subject.left(RecordedRow::Invitation, RowState::Gone))
            }
        };
        unit.record(Some(*organization), action, affected).await
    }
}
