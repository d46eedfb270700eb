//! Port for login attempts and re-authentication: one transaction reserves an attempt before the password is hashed,
//! another finishes it. Each commits exactly once, whatever the outcome.

use super::StoreError;
use crate::account::SignedAccount;
use crate::audit::SealedAuditRecord;
use crate::digest::{Digest, LookupDigests, RowMac};
use crate::id::{AccountId, KeyId, OrganizationId};
use crate::passcode::{PasscodeProof, PendingSeed};
use crate::principal::{Denial, SessionPrincipal};
use crate::sealed::{Blob, SealedPassword, SealedSeed};
use crate::session::NewSession;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Reserves one attempt, which is counted and committed before any hashing.
#[derive(Clone, Debug)]
pub struct ReserveAttempt {
    /// Lookup digests of the address.
    pub address: LookupDigests,
    /// Decoy row of the address, less than [`DECOYS`](crate::lockout::DECOYS).
    pub decoy: u16,
    /// Digest of the network.
    pub network: Digest,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of a reservation. Each writes one row: a throttle bucket, or instead the decoy of the address.
#[derive(Clone, Debug)]
pub enum Reservation {
    /// The attempt was counted in its bucket. Contains the facts on which the attempt is decided. If the attempt was
    /// the last that the bucket allows, the account has got the notice `login-locked`.
    Account(Box<ReservedAccount>),
    /// Not counted, because no account has the address. An address that is only invited counts as unknown.
    Unknown,
    /// Not counted, because of a lockout or a locked bucket.
    Throttled(OrganizationId, AccountId),
    /// Not counted, because the account or its organization is disabled.
    Disabled(OrganizationId, AccountId),
}

/// The facts on which an attempt is decided. Account and organization are active.
#[derive(Clone, Debug)]
pub struct ReservedAccount {
    /// What the row's code covers.
    pub signed: SignedAccount,
    /// MAC of the row.
    pub digest: RowMac,
    /// The sealed password.
    pub password: SealedPassword,
    /// The sealed TOTP secret.
    pub seed: SealedSeed,
    /// Consecutive attempts in the bucket that counted this one, including this one.
    pub attempts: u32,
}

impl ReservedAccount {
    /// Returns the instance keys of its MAC and of its sealed secrets.
    pub fn keys(&self) -> [KeyId; 3] {
        let of = |blob: &Blob| blob.key().unwrap_or(self.digest.key);
        [self.digest.key, of(&self.password.blob), of(&self.seed.blob)]
    }
}

/// Finishes an attempt with its only committed outcome.
#[derive(Clone, Debug)]
pub enum FinishAttempt {
    /// An attempt that was not counted. Reads and writes the decoy with the same number of statements and locks as the
    /// refusal of an account. Has no effect and adds no audit entry.
    Decoy {
        /// Decoy of the address.
        decoy: u16,
        /// Digest of the presented recovery code, if any. Its lookup never succeeds.
        recovery_code: Option<Digest>,
        /// Audit entry of an equivalent refusal, which is written to the decoy instead.
        entry: Box<SealedAuditRecord>,
    },
    /// An attempt on an account.
    Account(Box<FinishAccountAttempt>),
}

/// Finishes an attempt on an account. [`conclude_proof`](crate::proof::conclude_proof) decides the outcome in the same
/// transaction that stores it.
#[derive(Clone, Debug)]
pub struct FinishAccountAttempt {
    /// The account as reserved.
    pub reserved: SignedAccount,
    /// The presented factors.
    pub presented: VerifiedFactors,
    /// Audit records of a refusal.
    pub refusal: RefusalRecords,
    /// Digest of the network.
    pub network: Digest,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of checking password and passcode without the store.
#[derive(Clone, Debug)]
pub enum VerifiedFactors {
    /// A wrong password. A presented recovery code is looked up anyway, so that it takes the same work as with the
    /// correct password.
    WrongPassword {
        /// Digest of the recovery code.
        recovery_code: Option<Digest>,
    },
    /// The correct password with a passcode that does not match.
    WrongPasscode,
    /// The correct password with a passcode that may be unused.
    Proof(Box<VerifiedProof>),
}

/// A successful verification with its purpose.
#[derive(Clone, Debug)]
pub struct VerifiedProof {
    /// The second factor, which is marked as used. A recovery code creates the notice `recovery-code-used`.
    pub passcode: PasscodeProof,
    /// New verifier to store if the hash parameters were raised. `None` if the password is replaced.
    pub rehashed: Option<SealedPassword>,
    /// Purpose of the re-authentication or login.
    pub effect: ProofEffect,
    /// Audit record of the success.
    pub audit: SealedAuditRecord,
}

/// Audit records of a refusal. [`conclude_proof`](crate::proof::conclude_proof) selects those that apply.
#[derive(Clone, Debug)]
pub struct RefusalRecords {
    /// For a wrong password, or if the facts have changed.
    pub refused: SealedAuditRecord,
    /// For a wrong passcode after the correct password.
    pub passcode_refused: SealedAuditRecord,
    /// For an attempt that locks its bucket, if it does. Added to the record of the refusal, with the notice
    /// `login-locked`.
    pub bucket_locked: Option<SealedAuditRecord>,
    /// For the attempt that disables time-based passcodes. Added to the record of the refusal, with the notice
    /// `passcode-disabled`, only for the attempt that disables them.
    pub passcode_disabled: SealedAuditRecord,
}

/// Effect of a successful verification, carried out in the transaction that finishes the attempt.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "an attempt has one, which is not copied")]
pub enum ProofEffect {
    /// A login, which creates this session.
    Session(NewSession),
    /// A change of the caller's own account.
    Own {
        /// Principal that makes the request. It must be active and belong to the verified account.
        principal: SessionPrincipal,
        /// The change.
        change: OwnChange,
    },
}

/// A change of the caller's own account after re-authentication.
#[derive(Clone, Debug)]
pub enum OwnChange {
    /// New password. All other sessions end, and the row must still have the reserved version.
    Password {
        /// The new sealed password.
        password: SealedPassword,
        /// New fields that the row's MAC covers.
        after: SignedAccount,
        /// New MAC of the row.
        digest: RowMac,
    },
    /// New TOTP secret, pending confirmation. Replaces one that is already pending, and changes nothing else.
    PendingSeed(PendingSeed),
    /// Recovery codes that replace all previous ones. All other sessions end, and a pending TOTP secret is deleted.
    RecoveryCodes {
        /// The same TOTP secret, sealed under a new ID and with the new key of the recovery codes.
        seed: SealedSeed,
        /// Digests of the codes.
        codes: Vec<Digest>,
        /// New fields that the row's MAC covers.
        after: SignedAccount,
        /// New MAC of the row.
        digest: RowMac,
    },
}

/// Outcome of finishing an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Success: the passcode is marked as used and the network as known. The bucket of the network and a locked shared
    /// bucket are reset.
    Completed,
    /// Refused for this reason and recorded.
    Refused(super::LoginRefusal),
    /// Refused and recorded. The wrong passcode disabled the account's time-based passcodes.
    PasscodeDisabled,
    /// The principal of [`ProofEffect::Own`] is no longer authorized, or belongs to another account
    /// ([`Denial::AccountChanged`]). The refusal is recorded.
    Denied(Denial),
}

/// Port that counts and finishes attempts.
#[async_trait]
pub trait LoginAttemptRepository: Send + Sync {
    /// Reserves an attempt according to [`lockout`](crate::lockout).
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError>;

    /// Finishes an attempt. Records a refusal even if the account has been deleted. Only [`ProofEffect::Session`]
    /// counts as the last login of the account.
    async fn finish_attempt(&self, command: FinishAttempt) -> Result<AttemptOutcome, StoreError>;

    /// Returns whether any account logged in from the network within
    /// [`NETWORK_KNOWN_SECONDS`](crate::lockout::NETWORK_KNOWN_SECONDS), with a precision of one day. Reads only by
    /// network.
    async fn network_is_known(&self, network: Digest, now: Timestamp) -> Result<bool, StoreError>;
}
