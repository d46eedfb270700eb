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

use crate::account::{AccountLogins, AccountRights, AccountState, ListedAccount};
use crate::audit::{Affected, Subject};
use crate::digest::{Digest, DigestPurpose, RowMac};
use crate::email::EmailAddress;
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::id::{AccountId, OrganizationId};
use crate::port::KeyedDigester;
use crate::role::Role;
use crate::sealed::{SealedPassword, SealedSeed};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolmentDraft {
    /// The sealed password.
    pub password: SealedPassword,
    /// The sealed TOTP secret.
    pub seed: SealedSeed,
    /// Digests of the recovery codes.
    pub recovery_codes: Vec<Digest>,
    /// MAC of the row. If it does not verify, the draft cannot be confirmed.
    pub digest: RowMac,
}

impl EnrolmentDraft {
    /// Signs the draft of an account and returns it as stored.
    pub fn sign(
        account: (OrganizationId, AccountId),
        password: SealedPassword,
        seed: SealedSeed,
        recovery_codes: Vec<Digest>,
        digester: &dyn KeyedDigester,
    ) -> Self {
        let sign = |parts: &[&[u8]]| digester.sign(DigestPurpose::UnconfirmedSecrets, parts);
        let digest = Self::with_parts(account, (&password, &seed, &recovery_codes), sign);
        Self { password, seed, recovery_codes, digest }
    }

    /// Returns whether the row's MAC verifies. Its key must be [loaded](KeyedDigester::load_keys).
    pub fn mac_is_valid(&self, account: (OrganizationId, AccountId), digester: &dyn KeyedDigester) -> bool {
        let is_signed = |parts: &[&[u8]]| digester.is_signed(DigestPurpose::UnconfirmedSecrets, parts, &self.digest);
        Self::with_parts(account, (&self.password, &self.seed, &self.recovery_codes), is_signed)
    }

    fn with_parts<T>(
        (organization, account): (OrganizationId, AccountId),
        (password, seed, codes): (&SealedPassword, &SealedSeed, &[Digest]),
        digest: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        // Other secrets have an expiry instead of a password, so the number of parts differs.
        let parts: [&[u8]; 4] =
            [organization.as_bytes(), account.as_bytes(), password.id.as_bytes(), seed.id.as_bytes()];
        let parts: Vec<&[u8]> = parts
            .into_iter()
            .chain([&b"codes"[..]])
            .chain(codes.iter().map(|code| code.as_bytes().as_slice()))
            .collect();
        digest(&parts)
    }
}
