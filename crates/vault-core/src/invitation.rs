//! Invitations: accounts to be. They lie apart from accounts, so that nothing that logs in can meet one. An invitation
//! may also be for the owner of an account that lost its secrets, to enrol again.

use crate::account::{AccountGrant, AccountLogins, AccountState, ListedAccount};
use crate::audit::{RecordedGrant, RecordedRow, RowState};
use crate::digest::{Digest, DigestPurpose, RowMac};
use crate::port::KeyedDigester;
use crate::role::Role;
use crate::sealed::{SealedPassword, SealedSeed};
use crate::time::Timestamp;

/// How long an invitation can be taken up, in seconds: 72 h.
pub const INVITATION_SECONDS: i64 = 72 * 3600;

/// Somebody may make an account of this address and role by an enrolment code, or give the account new secrets by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// What it will grant; its state is [`AccountState::Invited`], its account the future account's id. Where it re-enrols
    /// an account, its state is [`AccountState::ReEnrolling`], its account that account, and its role grants nothing: the
    /// account's own does.
    pub grant: AccountGrant,
    /// The digest of its enrolment code.
    pub code: Digest,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time from which it can no longer be continued.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// The code that the row is to carry at `version` from now on. It covers the enrolment code, so that none opens another's
    /// invitation.
    pub fn digest(&self, version: i64, digester: &dyn KeyedDigester) -> RowMac {
        self.with_parts(version, |parts| digester.sign(DigestPurpose::InvitationGrant, parts))
    }

    fn with_parts<T>(&self, version: i64, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let parts: [&[u8]; 8] = [
            self.grant.account.as_bytes(),
            self.grant.organization.as_bytes(),
            self.grant.email.as_str().as_bytes(),
            self.grant.role.as_str().as_bytes(),
            self.grant.state.as_str().as_bytes(),
            self.code.as_bytes(),
            &self.expires_at.as_millis().to_be_bytes(),
            &version.to_be_bytes(),
        ];
        digest(&parts)
    }

    /// Whether it can still be taken up.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// Whether it gives an existing account new secrets instead of making one. The digest covers it.
    pub fn re_enrols(&self) -> bool {
        self.grant.state == AccountState::ReEnrolling
    }

    /// What it grants once it is taken up, if it makes an account.
    pub fn enrolled(&self) -> AccountGrant {
        AccountGrant { state: AccountState::Active, ..self.grant.clone() }
    }
}

/// An invitation as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// MAC of the row. If it does not verify, the row grants nothing.
    pub digest: RowMac,
    /// Counts changes of role; a change names the version it was decided on.
    pub version: i64,
}

impl StoredInvitation {
    /// The first version of an invitation.
    pub const FIRST_VERSION: i64 = 1;

    /// The invitation as it is stored at `version`.
    pub fn sign(invitation: Invitation, version: i64, digester: &dyn KeyedDigester) -> Self {
        Self { digest: invitation.digest(version, digester), invitation, version }
    }

    /// The invitation with another role, as it is stored then.
    #[must_use]
    pub fn with_role(&self, role: Role, digester: &dyn KeyedDigester) -> Self {
        let grant = AccountGrant { role, ..self.invitation.grant.clone() };
        Self::sign(Invitation { grant, ..self.invitation.clone() }, self.version + 1, digester)
    }

    /// Returns whether the row's MAC verifies. Its key must be [loaded](KeyedDigester::load_keys).
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        let is_signed = |parts: &[&[u8]]| digester.is_signed(DigestPurpose::InvitationGrant, parts, &self.digest);
        self.invitation.with_parts(self.version, is_signed)
    }

    /// The row's state, as the audit records it.
    pub fn state(&self, digester: &dyn KeyedDigester) -> RowState {
        self.states(digester).current()
    }

    /// The row's state, as the audit may have recorded it.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedGrant {
        let state = |parts: &[&[u8]]| RowState::of_grant(RecordedRow::Invitation, self.version, parts, digester);
        self.invitation.with_parts(self.version, state)
    }

    /// The invitation as lists of accounts show it.
    pub fn listed(&self) -> ListedAccount {
        ListedAccount {
            grant: self.invitation.grant.clone(),
            created_at: self.invitation.created_at,
            logins: AccountLogins::default(),
            invitation_expires_at: Some(self.invitation.expires_at),
        }
    }
}

/// What an invited person has chosen and was given, until a code confirms it.
#[derive(Clone, Debug)]
pub struct EnrolmentDraft {
    /// The password.
    pub password: SealedPassword,
    /// The passcode seed.
    pub seed: SealedSeed,
    /// The recovery codes.
    pub recovery_codes: Vec<Digest>,
}
