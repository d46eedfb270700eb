//! The two decisions of every proof that an account's owner is here, a login first of all: reserving an attempt
//! before the password is hashed, and completing it after.

use super::StoreError;
use crate::account::AccountGrant;
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::{AccountId, OrganizationId, SeedId};
use crate::organization::OrganizationState;
use crate::passcode::PasscodeProof;
use crate::principal::{Denial, SessionPrincipal};
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
    /// Counted; this is what the attempt will be decided on. Where it was the last that its class allows, the
    /// owner has got the notice `attempts-closed`.
    Account(Box<ReservedAccount>),
    /// Counted in its bucket; no account has the address. One that is only invited is such an address.
    Unknown,
    /// Not counted: within a wait, or the class is closed.
    TurnedAway {
        /// The account, where the address has one.
        account: Option<(OrganizationId, AccountId)>,
    },
}

/// The facts an attempt is decided on.
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
    /// The attempts in a row of the class that counted this one, this one included.
    pub attempts: u32,
}

/// Records that a reserved attempt failed.
#[derive(Clone, Debug)]
pub enum RefuseAttempt {
    /// No account has the address: the bucket's row notes the refusal, which decides nothing, so that the store
    /// works for an unknown address as it does for a known one. Nothing is recorded.
    Unknown {
        /// The bucket that counted the attempt.
        bucket: u16,
        /// Now.
        now: Timestamp,
    },
    /// Of an account.
    Account(Box<RefusedAccount>),
}

/// A failed attempt on an account.
#[derive(Clone, Debug)]
pub struct RefusedAccount {
    /// The organization.
    pub organization: OrganizationId,
    /// The account.
    pub account: AccountId,
    /// Now.
    pub now: Timestamp,
    /// The record of the refusal.
    pub audit: SealedAuditRecord,
    /// The record that the attempt closed its class, if it did; appended beside the refusal's.
    pub class_closed: Option<SealedAuditRecord>,
    /// There if the password was right and the passcode wrong: it counts towards disabling the time-based
    /// passcode. Holds the record to append, beside the notice `passcode-disabled`, only if this very attempt is
    /// the one that disables it (the count becomes [`WRONG_PASSCODES`](crate::lockout::WRONG_PASSCODES)).
    pub wrong_passcode: Option<SealedAuditRecord>,
}

/// What a proof is for: carried out in the decision that completes it.
#[derive(Clone, Debug)]
pub enum ProofEffect {
    /// A login: makes this session.
    Session(NewSession),
    /// A change of one's own account.
    Own {
        /// Who asks; must still be allowed to act, for the account that is proven.
        principal: SessionPrincipal,
        /// The change.
        change: OwnChange,
    },
}

/// A change of one's own account that a proof permits.
#[derive(Clone, Debug)]
pub enum OwnChange {
    /// New password; every other session ends. The password's and the row's version rise.
    Password(SealedPassword),
    /// A new seed waits to be confirmed, in the place of any that waits already. Nothing else changes.
    PendingSeed {
        /// The seed.
        seed: SealedSeed,
        /// How long it waits.
        expires_at: Timestamp,
    },
    /// Recovery codes instead of all those before; every other session ends. The row's version rises.
    RecoveryCodes(Vec<Digest>),
}

/// Completes a proof, on the facts it was reserved on and no others.
#[derive(Clone, Debug)]
pub struct CompleteProof {
    /// The grant as reserved; the row must still say the same.
    pub grant: AccountGrant,
    /// The password version as reserved; must be unchanged.
    pub password_version: i64,
    /// The seed as reserved; must be unchanged.
    pub seed: SeedId,
    /// What proved the second factor; is spent. A recovery code leaves the notice `recovery-code-used`.
    pub proof: PasscodeProof,
    /// The network's digest: becomes known, its class is reset, and a closed shared class with it.
    pub network: Digest,
    /// The verifier to store instead, where parameters have risen. Absent where the password is replaced.
    pub rehashed: Option<SealedPassword>,
    /// What it is for.
    pub effect: ProofEffect,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What completing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteProofOutcome {
    /// Carried out.
    Completed,
    /// The passcode was spent before, or time-based passcodes are disabled. Nothing was changed.
    PasscodeSpent,
    /// State, role, organization, password or seed changed since. Nothing was changed.
    Overtaken,
    /// The principal of [`ProofEffect::Own`] may no longer act, or is of another account
    /// ([`Denial::AccountChanged`]). Decided before anything else; nothing was changed.
    Refused(Denial),
}

/// Counts attempts and completes proofs.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LoginGuard: Send + Sync {
    /// Reserves an attempt by the rule of [`lockout`](crate::lockout).
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError>;

    /// Records a failed attempt. The refusal of an account is recorded also if the account is gone by now.
    async fn refuse_attempt(&self, command: RefuseAttempt) -> Result<(), StoreError>;

    /// Completes a proof: spends the passcode, carries the effect out, all or nothing. Only
    /// [`ProofEffect::Session`] counts as the account's last login.
    async fn complete_proof(&self, command: CompleteProof) -> Result<CompleteProofOutcome, StoreError>;
}
