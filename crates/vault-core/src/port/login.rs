//! The two decisions of a login: reserving an attempt before the password is hashed, and completing it after.

use super::StoreError;
use crate::account::AccountGrant;
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::{AccountId, OrganizationId, SeedId};
use crate::organization::OrganizationState;
use crate::passcode::PasscodeProof;
use crate::sealed::{SealedPassword, SealedSeed};
use crate::session::NewSession;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Reserves one attempt: counted and committed before any hashing.
#[derive(Clone, Copy, Debug)]
pub struct ReserveAttempt {
    /// The digest of the address.
    pub address: Digest,
    /// The bucket that counts attempts if the address is unknown.
    pub bucket: u16,
    /// The digest of the network.
    pub network: Digest,
    /// Now.
    pub now: Timestamp,
}

/// What reserving came to.
#[derive(Clone, Debug)]
pub enum Reservation {
    /// Counted; this is what the login will be decided on.
    Account(Box<ReservedAccount>),
    /// Counted in its bucket; there is no such address.
    Unknown,
    /// Not counted: within a wait, or the class is closed.
    TurnedAway {
        /// The account, where the address has one.
        account: Option<(OrganizationId, AccountId)>,
    },
}

/// The facts a login is decided on.
#[derive(Clone, Debug)]
pub struct ReservedAccount {
    /// What the row grants, if it fits its digest.
    pub grant: AccountGrant,
    /// The digest that the row carries.
    pub grant_digest: Digest,
    /// Whether the organization is in use.
    pub organization_state: OrganizationState,
    /// The password.
    pub password: SealedPassword,
    /// Counts password changes.
    pub password_version: i64,
    /// The passcode seed.
    pub seed: SealedSeed,
}

/// Records that a reserved attempt failed.
#[derive(Clone, Debug)]
pub struct RefuseAttempt {
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
    /// Whether the password was right and the passcode wrong; counts towards disabling the time-based passcode.
    pub wrong_passcode: bool,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Completes a login, on the facts it was reserved on and no others.
#[derive(Clone, Debug)]
pub struct CompleteLogin {
    /// The grant as reserved; the row must still say the same.
    pub grant: AccountGrant,
    /// The password version as reserved; must be unchanged.
    pub password_version: i64,
    /// The seed as reserved; must be unchanged.
    pub seed: SeedId,
    /// What proved the second factor; is spent.
    pub proof: PasscodeProof,
    /// The network's digest: becomes known, its class is reset, and a closed shared class with it.
    pub network: Digest,
    /// The verifier to store instead, where parameters have risen.
    pub rehashed: Option<SealedPassword>,
    /// The session to make.
    pub session: NewSession,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What completing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteLoginOutcome {
    /// The session is there.
    Completed,
    /// The passcode was spent before, or time-based passcodes are disabled. Nothing was changed.
    PasscodeSpent,
    /// State, role, organization, password or seed changed since. Nothing was changed.
    Overtaken,
}

/// Counts attempts and completes logins.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LoginGuard: Send + Sync {
    /// Reserves an attempt by the rule of [`lockout`](crate::lockout).
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError>;

    /// Records a failed attempt.
    async fn refuse_attempt(&self, command: RefuseAttempt) -> Result<(), StoreError>;

    /// Completes a login: spends the passcode, makes the session, all or nothing.
    async fn complete_login(&self, command: CompleteLogin) -> Result<CompleteLoginOutcome, StoreError>;
}
