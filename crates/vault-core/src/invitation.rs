//! Invitations to create an account, or to enrol again for an account that lost its secrets. They are stored separately
//! from accounts, so that no login can encounter one.

mod change;
mod confirm;
mod create;
mod draft;
mod find;

pub use change::{ChangeInvitation, InvitationChange};
pub use confirm::ConfirmEnrolment;
pub use create::CreateInvitation;
pub use draft::WriteDraft;
pub use find::{FindInvitation, OpenInvitation};
pub(crate) use find::{discard, invitation_for, invitations_for};

use crate::account::{AccountLogins, AccountRights, AccountSecrets, AccountState, ListedAccount};
use crate::audit::{Affected, Subject};
use crate::digest::Digest;
use crate::email::EmailAddress;
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::id::{AccountId, OrganizationId};
use crate::role::Role;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Validity of an invitation, in seconds: 72 h.
pub const INVITATION_SECONDS: i64 = 72 * 3600;

/// Permission to create an account with this address and role, or to replace the secrets of an account, with an
/// enrolment code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Rights of the future account, with the state [`AccountState::Invited`] and the account's future ID. For a
    /// re-enrolment, the state is [`AccountState::ReEnrolling`], the ID that of the account, and the role has no
    /// effect, because the account keeps its own.
    pub grant: AccountRights,
    /// Account that created it. `None` for an operator.
    pub invited_by: Option<AccountId>,
    /// Digest of its enrolment code.
    pub code: Digest,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time from which it can no longer be accepted.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// Returns the value that leads to the invitation of an organization for an address.
    pub(crate) fn at(email: &EmailAddress, organization: OrganizationId) -> Lookup {
        Lookup::new(Index::InvitedAddress, format!("{email} {organization}"))
    }

    /// Returns the value that leads to the invitation with an enrolment code.
    pub(crate) fn under(code: &Digest) -> Lookup {
        Lookup::new(Index::EnrolmentCode, code.to_base64())
    }

    /// Returns whether it can still be accepted.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// Returns whether it re-enrols an existing account instead of creating one.
    pub fn re_enrols(&self) -> bool {
        self.grant.state == AccountState::ReEnrolling
    }

    /// Returns the rights of the account that it creates.
    pub fn enrolled(&self) -> AccountRights {
        AccountRights { state: AccountState::Active, ..self.grant.clone() }
    }

    /// Returns the invitation with another role.
    #[must_use]
    pub fn with_role(&self, role: Role) -> Self {
        Self { grant: AccountRights { role, ..self.grant.clone() }, ..self.clone() }
    }

    /// Returns the invitation as lists of accounts show it.
    pub fn listed(&self) -> ListedAccount {
        ListedAccount {
            grant: self.grant.clone(),
            created_at: self.created_at,
            logins: AccountLogins::default(),
            invitation_expires_at: Some(self.expires_at),
        }
    }
}

impl Entity for Invitation {
    const KIND: Kind = Kind::Invitation;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        // The address of one that re-enrols leads to the account.
        let address = (!self.re_enrols()).then(|| Self::at(&self.grant.email, self.grant.organization));
        address.into_iter().chain([Self::under(&self.code)]).collect()
    }

    fn due_at(&self) -> Option<Timestamp> {
        Some(self.expires_at)
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Account(AccountId::from_uuid(id)).into()
    }
}

/// Password, TOTP secret and recovery codes of an invited user, until a code confirms them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolmentDraft {
    /// Password and TOTP secret. Each draft has its own ID.
    pub secrets: AccountSecrets,
    /// Digests of the recovery codes.
    pub recovery_codes: Vec<Digest>,
}

impl Entity for EnrolmentDraft {
    const KIND: Kind = Kind::EnrolmentDraft;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        Vec::new()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Account(AccountId::from_uuid(id)).into()
    }
}
