//! The two decisions of every proof that an account's owner is present, a login first of all: reserving an attempt
//! before the password is hashed, and concluding it after. Each commits once, whatever it comes to.

use super::StoreError;
use crate::account::SignedAccount;
use crate::audit::SealedAuditRecord;
use crate::digest::{Digest, LookUpDigests, RowMac};
use crate::id::{AccountId, KeyId, OrganizationId};
use crate::passcode::PasscodeProof;
use crate::principal::{Denial, SessionPrincipal};
use crate::sealed::{Blob, SealedPassword, SealedSeed};
use crate::session::NewSession;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Reserves one attempt: counted and committed before any hashing.
#[derive(Clone, Debug)]
pub struct ReserveAttempt {
    /// The digest of the address.
    pub address: LookUpDigests,
    /// The address's decoy, below [`DECOYS`](crate::lockout::DECOYS).
    pub decoy: u16,
    /// The digest of the network.
    pub network: Digest,
    /// Now.
    pub now: Timestamp,
}

/// What reserving came to. Each writes one row: a class, or the decoy of the address in its place.
#[derive(Clone, Debug)]
pub enum Reservation {
    /// Counted in its class; this is what the attempt will be decided on. Where it was the last that its class allows,
    /// the owner has got the notice `attempts-closed`.
    Account(Box<ReservedAccount>),
    /// Not counted: no account has the address. One that is only invited is such an address.
    Unknown,
    /// Not counted: a wait lasts, or the class is closed.
    Throttled(OrganizationId, AccountId),
    /// Not counted: the account or its organization is disabled.
    Disabled(OrganizationId, AccountId),
}

/// The facts an attempt is decided on. Account and organization are active.
#[derive(Clone, Debug)]
pub struct ReservedAccount {
    /// What the row's code covers.
    pub signed: SignedAccount,
    /// The code that the row carries.
    pub digest: RowMac,
    /// The password.
    pub password: SealedPassword,
    /// The passcode seed.
    pub seed: SealedSeed,
    /// The attempts in a row of the class that counted this one, this one included.
    pub attempts: u32,
}

impl ReservedAccount {
    /// The instance keys that made its code and sealed its secrets.
    pub fn keys(&self) -> [KeyId; 3] {
        let of = |blob: &Blob| blob.key().unwrap_or(self.digest.key);
        [self.digest.key, of(&self.password.0), of(&self.seed.blob)]
    }
}

/// Concludes an attempt: the one committed outcome of it.
#[derive(Clone, Debug)]
pub enum ConcludeAttempt {
    /// Of an attempt that was not counted. Reads and writes the decoy with as many statements and locks as the refusal
    /// of an account takes; decides nothing, and adds nothing to the audit.
    Decoy {
        /// The decoy of the address.
        decoy: u16,
        /// The digest of the recovery code that came along, if one did. It is looked up in vain.
        recovery_code: Option<Digest>,
        /// What the audit would get. It is written to the decoy in place of it.
        entry: Box<SealedAuditRecord>,
    },
    /// Of an attempt on an account.
    Account(Box<ConcludeProof>),
}

/// The conclusion of an attempt on an account: decided by [`conclude_proof`](crate::proof::conclude_proof) and carried out or
/// refused, in one transaction.
#[derive(Clone, Debug)]
pub struct ConcludeProof {
    /// The account as reserved.
    pub reserved: SignedAccount,
    /// What was brought.
    pub brought: VerifiedFactors,
    /// What to record if it is refused.
    pub refusal: RefusalRecords,
    /// The network's digest.
    pub network: Digest,
    /// Now.
    pub now: Timestamp,
}

/// The outcome of checking password and passcode without the store.
#[derive(Clone, Debug)]
pub enum VerifiedFactors {
    /// A wrong password. The recovery code that came along, if one did, is looked up all the same: it takes the same
    /// work as one that comes with the right password.
    WrongPassword {
        /// Its digest.
        recovery_code: Option<Digest>,
    },
    /// The right password, and a passcode that is no code of the account.
    WrongPasscode,
    /// The right password, and a passcode that may be unused.
    Proof(Box<VerifiedProof>),
}

/// A proof, and what it is for.
#[derive(Clone, Debug)]
pub struct VerifiedProof {
    /// The second factor; is marked used. A recovery code leaves the notice `recovery-code-used`.
    pub passcode: PasscodeProof,
    /// The verifier to store instead, where parameters have risen. Absent where the password is replaced.
    pub rehashed: Option<SealedPassword>,
    /// What it is for.
    pub effect: ProofEffect,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// The records of a refusal. [`conclude_proof`](crate::proof::conclude_proof) picks those that apply.
#[derive(Clone, Debug)]
pub struct RefusalRecords {
    /// After a wrong password, or where the facts have changed.
    pub refused: SealedAuditRecord,
    /// After the right password.
    pub passcode_refused: SealedAuditRecord,
    /// The attempt closed its class, if it did: appended to the refusal's, with the notice `attempts-closed`.
    pub class_closed: Option<SealedAuditRecord>,
    /// The attempt disabled time-based passcodes: appended to the refusal's, with the notice `passcode-disabled`, only
    /// if this very attempt is the one.
    pub passcode_disabled: SealedAuditRecord,
}

/// What a proof is for: carried out in the decision that concludes it.
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
    /// New password; every other session ends. The row must still have the reserved version.
    Password {
        /// The password.
        password: SealedPassword,
        /// What the row's code covers from now on.
        after: SignedAccount,
        /// The code.
        digest: RowMac,
    },
    /// A new seed waits to be confirmed, in the place of any that waits already. Nothing else changes.
    PendingSeed {
        /// The seed.
        seed: SealedSeed,
        /// How long it waits.
        expires_at: Timestamp,
    },
    /// Recovery codes instead of all those before; every other session ends.
    RecoveryCodes(Vec<Digest>),
}

/// What concluding came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Done: the passcode is marked used, the network is known, its class and a closed shared class are reset.
    Completed,
    /// Refused for this reason; recorded.
    Refused(super::LoginRefusal),
    /// Refused for a wrong passcode, which disabled the account's time-based passcodes; recorded.
    PasscodeDisabled,
    /// The principal of [`ProofEffect::Own`] may no longer act, or is of another account
    /// ([`Denial::AccountChanged`]). The refusal is recorded.
    Denied(Denial),
}

/// Counts attempts and concludes them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LoginAttemptRepository: Send + Sync {
    /// Reserves an attempt by the rule of [`lockout`](crate::lockout).
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError>;

    /// Concludes an attempt. A refusal is recorded also if the account is gone by now. Only [`ProofEffect::Session`]
    /// counts as the account's last login.
    async fn conclude_attempt(&self, command: ConcludeAttempt) -> Result<Conclusion, StoreError>;

    /// Whether any account logged in from the network within
    /// [`NETWORK_KNOWN_SECONDS`](crate::lockout::NETWORK_KNOWN_SECONDS), to the day. Looks at the network alone.
    async fn network_is_known(&self, network: Digest, now: Timestamp) -> Result<bool, StoreError>;
}
