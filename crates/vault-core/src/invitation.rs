//! Invitations: accounts to be. They lie apart from accounts, so that nothing that logs in can meet one.

use crate::account::{Account, AccountGrant, AccountState};
use crate::digest::{Digest, DigestPurpose};
use crate::port::KeyedDigester;
use crate::sealed::{SealedPassword, SealedSeed};
use crate::time::Timestamp;

/// How long an invitation can be taken up, in seconds: 72 h.
pub const INVITATION_SECONDS: i64 = 72 * 3600;

/// Somebody may make an account of this address and role by an enrolment code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// What it will grant; its state is [`AccountState::Invited`], its account the future account's id.
    pub grant: AccountGrant,
    /// The digest of its enrolment code.
    pub code: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// The first moment at which it cannot be taken up any more.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// The digest that the row must carry. It covers the code, so that no code opens another's invitation.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> Digest {
        let parts: [&[u8]; 7] = [
            self.grant.account.as_bytes(),
            self.grant.organization.as_bytes(),
            self.grant.email.as_str().as_bytes(),
            self.grant.role.as_str().as_bytes(),
            self.grant.state.as_str().as_bytes(),
            self.code.as_bytes(),
            &self.expires_at.as_millis().to_be_bytes(),
        ];
        digester.digest(DigestPurpose::InvitationGrant, &parts)
    }

    /// Whether it can still be taken up.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// What it grants once it is taken up.
    pub fn enrolled(&self) -> AccountGrant {
        AccountGrant { state: AccountState::Active, ..self.grant.clone() }
    }
}

/// An invitation as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// The digest that the row carries; where it does not fit, the row grants nothing.
    pub digest: Digest,
    /// Counts changes of role; a change names the version it was decided on.
    pub version: i64,
}

impl StoredInvitation {
    /// Whether the row fits its digest.
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        self.invitation.digest(digester) == self.digest
    }

    /// The invitation as lists of accounts show it.
    pub fn listed(&self) -> Account {
        Account {
            grant: self.invitation.grant.clone(),
            grant_digest: self.digest,
            version: self.version,
            created_at: self.invitation.created_at,
            last_login_at: None,
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
