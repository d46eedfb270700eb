//! Invitations in the store.

use super::{ChangeAccountOutcome, StoreError};
use crate::account::AccountGrant;
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::{AccountId, OrganizationId, SeedId};
use crate::invitation::{EnrolmentDraft, Invitation, StoredInvitation};
use crate::organization::OrganizationName;
use crate::passcode::TimeStep;
use crate::principal::{Denial, Principal};
use crate::sealed::SealedSeed;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Invites somebody.
#[derive(Clone, Debug)]
pub struct CreateInvitation {
    /// By whose order; judged in the decision.
    pub authority: Principal,
    /// The invitation.
    pub invitation: Invitation,
    /// The digest over it.
    pub digest: Digest,
    /// The digest of its address: stands in the directory from now on.
    pub address: Digest,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What inviting came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateInvitationOutcome {
    /// Made. An invitation of the same address that was over is gone.
    Created,
    /// The address belongs to an account or to an open invitation, of this organization or another.
    AddressTaken,
    /// No such organization within the authority's reach.
    NoOrganization,
    /// The session may no longer act. Decided before anything else.
    Refused(Denial),
}

/// An invitation that can be taken up now, as its code finds it.
#[derive(Clone, Debug)]
pub struct OpenInvitation {
    /// The invitation.
    pub stored: StoredInvitation,
    /// The organization's name.
    pub organization: OrganizationName,
    /// The seed of the newest draft, if there is a draft.
    pub seed: Option<SealedSeed>,
}

/// Writes the draft of an enrolment, in the place of any before.
#[derive(Clone, Debug)]
pub struct WriteDraft {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to be.
    pub account: AccountId,
    /// The digest of the code that the invitation must still have.
    pub code: Digest,
    /// The draft.
    pub draft: EnrolmentDraft,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Makes an account of an invitation and its draft: password, seed and recovery codes are the draft's.
#[derive(Clone, Debug)]
pub struct ConfirmEnrolment {
    /// What the account grants: the invitation's, active.
    pub grant: AccountGrant,
    /// The digest over it.
    pub grant_digest: Digest,
    /// The digest of the code that the invitation must still have.
    pub code: Digest,
    /// The invitation's version as read; must be unchanged.
    pub version: i64,
    /// The seed of the draft as read; must be unchanged.
    pub seed: SeedId,
    /// The step whose code confirmed it; is spent, so that this code does not log in.
    pub step: TimeStep,
    /// Now: the account is made and its passcode enrolled now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// One change of an invitation.
#[derive(Clone, Debug)]
pub enum InvitationChange {
    /// Another role: grant and digest are replaced; code, draft and end stay.
    Grant {
        /// The new grant, still invited.
        grant: AccountGrant,
        /// The digest over the invitation.
        digest: Digest,
    },
    /// It is withdrawn, with its draft; its address is free.
    Delete,
}

/// Changes an invitation.
#[derive(Clone, Debug)]
pub struct ChangeInvitation {
    /// By whose order; judged in the decision.
    pub authority: Principal,
    /// The organization.
    pub organization: OrganizationId,
    /// The account to be.
    pub account: AccountId,
    /// The version that the change was decided on.
    pub version: i64,
    /// The change.
    pub change: InvitationChange,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Invitations. None of them is ever met by what logs in.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait InvitationRepository: Send + Sync {
    /// Makes one.
    async fn create_invitation(&self, command: CreateInvitation) -> Result<CreateInvitationOutcome, StoreError>;

    /// The one with this code, if it is open at `now` and its organization in use.
    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError>;

    /// Writes a draft. `false`: there is no such open invitation in an organization in use; nothing was changed.
    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError>;

    /// Makes the account; invitation and code are gone. `false`: the invitation is not as read, over, gone, or
    /// its organization not in use; nothing was changed. Of several at once, one is told `true`.
    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<bool, StoreError>;

    /// Changes one, open or over. Never comes to [`ChangeAccountOutcome::LastAdmin`].
    async fn change_invitation(&self, command: ChangeInvitation) -> Result<ChangeAccountOutcome, StoreError>;
}
