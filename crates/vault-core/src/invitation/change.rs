//! Changes of invitations.

use super::{Invitation, discard};
use crate::account::{ListedAccount, changes};
use crate::audit::{Affected, AuditAction, RecordedRow, RowState, Subject};
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
/// [`Refusal::NotFound`]: the principal may not see such an invitation, or it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeInvitation {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to create.
    pub account: AccountId,
    /// The change.
    pub change: InvitationChange,
}

impl Operation for ChangeInvitation {
    /// The invitation after the change, or before its deletion.
    type Outcome = ListedAccount;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<ListedAccount, Failure> {
        let Self { organization, account, change } = self;
        unit.authorize().await?;
        if !unit.principal().reaches(*organization) {
            return Err(Refusal::NotFound.into());
        }
        let before = unit.find::<Invitation>(*organization, *account.as_uuid()).await?;
        let before = before.filter(|before| !before.re_enrols()).ok_or(Refusal::NotFound)?;
        let (subject, mut listed) = (Subject::Account(*account), before.listed());
        let (action, affected) = match change {
            InvitationChange::Role(role) if *role == before.grant.role => return Ok(listed),
            InvitationChange::Role(role) => {
                let after = before.with_role(*role);
                unit.replace(&before, &after).await?;
                listed = after.listed();
                let changes = changes(&before.grant, &after.grant);
                (AuditAction::InvitationChanged, Affected::from(subject).changing(changes))
            }
            InvitationChange::Delete => {
                discard(unit, (*organization, *account)).await?;
                (AuditAction::InvitationDeleted, subject.left(RecordedRow::Invitation, RowState::Gone))
            }
        };
        unit.record(Some(*organization), action, affected).await?;
        Ok(listed)
    }
}
