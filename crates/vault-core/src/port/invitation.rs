//! Invitations in the store.

use super::StoreError;
use crate::account::SignedAccount;
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::digest::{Digest, LookUpDigests, RowMac};
use crate::id::{AccountId, OrganizationId, SeedId};
use crate::invitation::{EnrolmentDraft, StoredInvitation};
use crate::organization::OrganizationName;
use crate::passcode::TimeStep;
use crate::sealed::SealedSeed;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Invites somebody.
#[derive(Clone, Debug)]
pub struct CreateInvitation {
    /// The invitation.
    pub stored: StoredInvitation,
    /// The digest of its address.
    pub address: LookUpDigests,
    /// What to record if the address has an account.
    pub address_in_use: SealedAuditRecord,
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
    /// The account that it re-enrols, as its row is now, with the digest that the row carries; absent where it makes one.
    pub account: Option<(SignedAccount, RowMac)>,
}

/// Writes the draft of an enrolment, in the place of any before. There is no principal yet: the code is the authority.
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

/// Makes an account of an invitation and its draft, or gives the account that it re-enrols new secrets: password, seed and
/// recovery codes are the draft's. There is no principal yet: the code is the authority.
#[derive(Clone, Debug)]
pub struct ConfirmEnrolment {
    /// What the account's row will be signed with: the invitation's grant, active, or what the account that is re-enrolled
    /// grants; and the seed of the draft as read, which must be unchanged.
    pub signed: SignedAccount,
    /// The version of the account that is re-enrolled, as read; must be unchanged. Absent: an account is made.
    pub account_version: Option<i64>,
    /// The code over it.
    pub digest: RowMac,
    /// The digests of the address.
    pub address: LookUpDigests,
    /// The digest of the enrolment code that the invitation must still have.
    pub code: Digest,
    /// The invitation's version as read; must be unchanged.
    pub version: i64,
    /// The step whose code confirmed it; marked used, so that this code cannot log in.
    pub step: TimeStep,
    /// The time of the passcode's enrolment, and of the creation of an account that is made.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

impl ConfirmEnrolment {
    /// The seed of the draft.
    pub const fn seed(&self) -> SeedId {
        self.signed.seed
    }
}

/// One change of an invitation.
#[derive(Clone, Debug)]
pub enum InvitationChange {
    /// Another role; code, draft and end stay.
    Role(StoredInvitation),
    /// It is withdrawn, with its draft.
    Delete,
}

/// Changes an invitation.
#[derive(Clone, Debug)]
pub struct ChangeInvitation {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to be.
    pub account: AccountId,
    /// The version that the change was decided on.
    pub version: i64,
    /// The change.
    pub change: InvitationChange,
}

/// Invitations. None of them is ever met by what logs in. Methods with a [`Command`] refuse a principal that may not
/// act ([`StoreError::Denied`]), in the same transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait InvitationRepository: Send + Sync {
    /// Makes one. An invitation of the organization for the same address that is over goes in the same decision.
    ///
    /// Refused with [`Refusal::NoOrganization`](crate::Refusal::NoOrganization),
    /// [`Refusal::AlreadyInvited`](crate::Refusal::AlreadyInvited),
    /// [`ACCOUNT_LIMIT_REACHED`](crate::account::ACCOUNT_LIMIT_REACHED);
    /// [`Refusal::AddressInUse`](crate::Refusal::AddressInUse), recorded and, unless an operator asked, counted by the
    /// rule of [`HourlyLimit::ADDRESS_CONFLICTS`](crate::hourly::HourlyLimit), which then refuses with
    /// [`Refusal::TooManyConflicts`](crate::Refusal::TooManyConflicts).
    async fn create_invitation(&self, command: Command<CreateInvitation>) -> Result<(), StoreError>;

    /// The one with this code, if it is open at `now` and its organization active.
    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError>;

    /// Writes a draft. `false`: there is no such open invitation in an active organization; nothing was changed.
    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError>;

    /// Makes the account, or gives it new secrets; invitation and code are gone. Of several at once, one is told so.
    ///
    /// Refused with [`Refusal::Contended`](crate::Refusal::Contended): the invitation or the account that it re-enrols is
    /// not as read, over, gone, or its organization not active; [`Refusal::AddressInUse`](crate::Refusal::AddressInUse): the address has got an account
    /// meanwhile, by an invitation of another organization.
    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<(), StoreError>;

    /// Changes one, open or over.
    ///
    /// Refused with [`Refusal::NotFound`](crate::Refusal::NotFound): no such invitation that the principal may see;
    /// [`Refusal::Contended`](crate::Refusal::Contended): the row has another version.
    async fn change_invitation(&self, command: Command<ChangeInvitation>) -> Result<(), StoreError>;
}
