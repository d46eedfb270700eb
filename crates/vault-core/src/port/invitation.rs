//! Port for invitations in the store.

use super::StoreError;
use crate::account::SignedAccount;
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::digest::{Digest, LookupDigests, RowMac};
use crate::id::{AccountId, OrganizationId};
use crate::invitation::{EnrolmentDraft, StoredInvitation};
use crate::passcode::TimeStep;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Invites a user.
#[derive(Clone, Debug)]
pub struct CreateInvitation {
    /// The invitation.
    pub stored: StoredInvitation,
    /// Lookup digests of its address.
    pub address: LookupDigests,
    /// Audit record if the address already has an account.
    pub address_in_use: SealedAuditRecord,
}

/// An invitation that can be accepted now, as found by its code.
#[derive(Clone, Debug)]
pub struct OpenInvitation {
    /// The invitation.
    pub stored: StoredInvitation,
    /// Account that created the invitation, if it still exists, and the MAC of its row.
    pub invited_by: Option<(SignedAccount, RowMac)>,
    /// The newest draft, if any.
    pub draft: Option<EnrolmentDraft>,
    /// Account to re-enrol with its current row and the MAC of that row. `None` if the invitation creates an account.
    pub account: Option<(SignedAccount, RowMac)>,
}

/// Writes the draft of an enrolment and replaces any previous one. There is no principal yet: the enrolment code
/// authorizes the change.
#[derive(Clone, Debug)]
pub struct WriteDraft {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to create.
    pub account: AccountId,
    /// Digest of the enrolment code, which the invitation must still have.
    pub code: Digest,
    /// The draft.
    pub draft: EnrolmentDraft,
    /// Current time.
    pub now: Timestamp,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Creates an account from an invitation and its draft, or gives the re-enrolled account the password, TOTP secret and
/// recovery codes of the draft. There is no principal yet: the enrolment code authorizes the change.
#[derive(Clone, Debug)]
pub struct ConfirmEnrolment {
    /// Fields of the new row: the rights of the invitation with state active, or those of the re-enrolled account, and
    /// the IDs of the draft's password and TOTP secret, which must be unchanged.
    pub signed: SignedAccount,
    /// Version of the re-enrolled account as read, which must be unchanged. `None` if an account is created.
    pub account_version: Option<i64>,
    /// MAC of the new row.
    pub digest: RowMac,
    /// Lookup digests of the address.
    pub address: LookupDigests,
    /// Digest of the enrolment code, which the invitation must still have.
    pub code: Digest,
    /// Version of the invitation as read, which must be unchanged.
    pub version: i64,
    /// MAC of the draft as read, which must be unchanged.
    pub draft: RowMac,
    /// Time step whose code confirmed the enrolment. It is marked as used, so that this code cannot log in.
    pub step: TimeStep,
    /// Time of the passcode's enrolment, and of the creation of a new account.
    pub now: Timestamp,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Change of an invitation.
#[derive(Clone, Debug)]
pub enum InvitationChange {
    /// New role. Enrolment code, draft and expiry are unchanged.
    Role(StoredInvitation),
    /// Deletes the invitation and its draft.
    Delete,
}

/// Changes an invitation.
#[derive(Clone, Debug)]
pub struct ChangeInvitation {
    /// The organization.
    pub organization: OrganizationId,
    /// The account to create.
    pub account: AccountId,
    /// Version that the change is based on.
    pub version: i64,
    /// The change.
    pub change: InvitationChange,
}

/// Port for invitations. Logins never read them. Methods with a [`Command`] check authorization in their own
/// transaction and return [`StoreError::Denied`] if the principal may not act.
#[async_trait]
pub trait InvitationRepository: Send + Sync {
    /// Creates an invitation, and deletes an expired one of the organization for the same address in the same
    /// transaction.
    ///
    /// # Errors
    /// - [`Refusal::NoOrganization`](crate::Refusal::NoOrganization): the organization does not exist.
    /// - [`Refusal::AlreadyInvited`](crate::Refusal::AlreadyInvited): the organization has an open invitation for the
    ///   address.
    /// - [`ACCOUNT_LIMIT_REACHED`](crate::account::ACCOUNT_LIMIT_REACHED): the organization has the maximum number of
    ///   accounts and invitations.
    /// - [`Refusal::AddressInUse`](crate::Refusal::AddressInUse): the address has an account. The refusal is recorded
    ///   and, except for operators, counted by [`HourlyLimit::ADDRESS_CONFLICTS`](crate::hourly::HourlyLimit).
    /// - [`Refusal::TooManyConflicts`](crate::Refusal::TooManyConflicts): that limit is exceeded.
    async fn create_invitation(&self, command: Command<CreateInvitation>) -> Result<(), StoreError>;

    /// Returns the invitation with this code if it is open at `now` and its organization is active.
    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError>;

    /// Writes a draft. Returns `false` and changes nothing if no such invitation is open in an active organization.
    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError>;

    /// Creates the account or replaces its secrets, and deletes the invitation with its code. If several calls race,
    /// exactly one succeeds.
    ///
    /// # Errors
    /// - [`Refusal::Contended`](crate::Refusal::Contended): the invitation or the re-enrolled account has changed, was
    ///   deleted or has expired, or its organization is not active.
    /// - [`Refusal::AddressInUse`](crate::Refusal::AddressInUse): an invitation of another organization has created an
    ///   account for the address in the meantime.
    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<(), StoreError>;

    /// Changes an open or expired invitation.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound): the principal may not see such an invitation, or it does not
    ///   exist.
    /// - [`Refusal::Contended`](crate::Refusal::Contended): the row has another version.
    async fn change_invitation(&self, command: Command<ChangeInvitation>) -> Result<(), StoreError>;
}
