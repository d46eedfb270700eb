//! The draft of an enrolment.

use super::EnrolmentDraft;
use super::find::open;
use crate::account::put;
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::Digest;
use crate::id::{AccountId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};

/// Writes the draft of an enrolment and replaces any previous one. There is no principal yet: the enrolment code
/// authorizes the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteDraft {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to create.
    pub account: AccountId,
    /// Digest of the enrolment code, which the invitation must still have.
    pub code: Digest,
    /// The draft.
    pub draft: EnrolmentDraft,
}

impl Operation for WriteDraft {
    /// `false` if no such invitation is open in an active organization. Nothing is changed then.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let Self { organization, account, code, draft } = self;
        let place = (*organization, *account);
        if open(unit, place, code).await?.is_none() {
            return Ok(false);
        }
        put(unit, place, draft).await?;
        let (action, subject) = (AuditAction::EnrolmentDrafted, Subject::Account(*account));
        unit.record_as(Actor::Unknown, Some(*organization), action, subject.into()).await?;
        Ok(true)
    }
}
