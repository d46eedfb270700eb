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

use crate::account::{AccountLogins, AccountRights, AccountState, ListedAccount};
use crate::audit::{RecordedRights, RecordedRow, RowState};
use crate::digest::{Digest, DigestPurpose, RowMac};
use crate::id::{AccountId, OrganizationId};
use crate::port::KeyedDigester;
use crate::role::Role;
use crate::sealed::{SealedPassword, SealedSeed};
use crate::time::Timestamp;

/// Validity of an invitation, in seconds: 72 h.
pub const INVITATION_SECONDS: i64 = 72 * 3600;

/// Permission to create an account with this address and role, or to replace the secrets of an account, with an
/// enrolment code.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Computes the MAC of the row at `version`. It covers the enrolment code, so that no code is valid for another
    /// invitation.
    pub fn digest(&self, version: i64, digester: &dyn KeyedDigester) -> RowMac {
        self.with_parts(version, |parts| digester.sign(DigestPurpose::InvitationGrant, parts))
    }

    fn with_parts<T>(&self, version: i64, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let parts: [&[u8]; 9] = [
            self.grant.account.as_bytes(),
            self.grant.organization.as_bytes(),
            self.grant.email.as_str().as_bytes(),
            self.grant.role.as_str().as_bytes(),
            self.grant.state.as_str().as_bytes(),
            self.invited_by.as_ref().map_or(&[], |account| account.as_bytes().as_slice()),
            self.code.as_bytes(),
            &self.expires_at.as_millis().to_be_bytes(),
            &version.to_be_bytes(),
        ];
        digest(&parts)
    }

    /// Returns whether it can still be accepted.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// Returns whether it re-enrols an existing account instead of creating one. The MAC covers this.
    pub fn re_enrols(&self) -> bool {
        self.grant.state == AccountState::ReEnrolling
    }

    /// Returns the rights of the account that it creates.
    pub fn enrolled(&self) -> AccountRights {
        AccountRights { state: AccountState::Active, ..self.grant.clone() }
    }
}

/// A stored invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// MAC of the row. If it does not verify, the row grants nothing.
    pub digest: RowMac,
    /// Number of changes of the role. A change names the version that it is based on.
    pub version: i64,
}

impl StoredInvitation {
    /// First version of an invitation.
    pub const FIRST_VERSION: i64 = 1;

    /// Signs the invitation and returns it as stored at `version`.
    pub fn sign(invitation: Invitation, version: i64, digester: &dyn KeyedDigester) -> Self {
        Self { digest: invitation.digest(version, digester), invitation, version }
    }

    /// Returns the invitation with another role, as stored.
    #[must_use]
    pub fn with_role(&self, role: Role, digester: &dyn KeyedDigester) -> Self {
        let grant = AccountRights { role, ..self.invitation.grant.clone() };
        Self::sign(Invitation { grant, ..self.invitation.clone() }, self.version + 1, digester)
    }

    /// Returns whether the row's MAC verifies. Its key must be [loaded](KeyedDigester::load_keys).
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        let is_signed = |parts: &[&[u8]]| digester.is_signed(DigestPurpose::InvitationGrant, parts, &self.digest);
        self.invitation.with_parts(self.version, is_signed)
    }

    /// Returns the state of the row, as the audit log records it.
    pub fn state(&self, digester: &dyn KeyedDigester) -> RowState {
        self.states(digester).current()
    }

    /// Returns the state of the row in every form in which the audit log may have recorded it.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedRights {
        let state = |parts: &[&[u8]]| RowState::of_grant(RecordedRow::Invitation, self.version, parts, digester);
        self.invitation.with_parts(self.version, state)
    }

    /// Returns the invitation as lists of accounts show it.
    pub fn listed(&self) -> ListedAccount {
        ListedAccount {
            grant: self.invitation.grant.clone(),
            created_at: self.invitation.created_at,
            logins: AccountLogins::default(),
            invitation_expires_at: Some(self.invitation.expires_at),
        }
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
