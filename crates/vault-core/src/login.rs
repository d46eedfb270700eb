//! Login attempts and re-authentication: an operation reserves an attempt before the password is hashed, another one
//! finishes it. Each commits exactly once, whatever the outcome.
//!
//! An attempt on an unknown address executes the same statements as a refusal, on the rows of one decoy account.

mod finish;
mod network;
mod proof;
mod reserve;

pub use finish::FinishAttempt;
pub use network::NetworkIsKnown;
pub use proof::{Claim, ProofFacts, ProofOutcome, RefusedProof, conclude_proof, is_as_reserved, verify_proof};
pub use reserve::ReserveAttempt;

use crate::account::{Account, AccountSecrets};
use crate::digest::Digest;
use crate::entity::{DocumentSecret, OF_INSTANCE};
use crate::id::{AccountId, OrganizationId, SecretsId};
use crate::passcode::PasscodeProof;
use crate::port::{AccountPlace, LoginRefusal};
use crate::principal::Denial;
use crate::session::NewSession;

/// The decoy account. It has rows for throttle buckets and results of logins, and no documents: no address leads to it.
pub const DECOY: AccountPlace = (OF_INSTANCE, AccountId::from_bytes([0; 16]));

/// Outcome of a reservation. Each writes one throttle bucket: that of the account, or instead one of the decoy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The attempt was counted in its bucket. Contains the facts on which the attempt is decided.
    Account(Box<ReservedAccount>),
    /// Not counted, because no account has the address. An address that is only invited counts as unknown.
    Unknown,
    /// Not counted, because of a lockout or a locked bucket.
    Throttled(OrganizationId, AccountId),
    /// Not counted, because the account or its organization is disabled.
    Disabled(OrganizationId, AccountId),
}

/// The facts on which an attempt is decided. Account and organization are active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedAccount {
    /// The account.
    pub account: Account,
    /// Its password and TOTP secret. `None` if they do not open, or others were put back outside the service.
    pub secrets: Option<AccountSecrets>,
    /// Consecutive attempts in the bucket that counted this one, including this one.
    pub attempts: u32,
}

/// Outcome of checking password and passcode without the store.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedProof {
    /// The second factor, which is marked as used. A recovery code creates the notice `recovery-code-used`.
    pub passcode: PasscodeProof,
    /// New verifier to store if the hash parameters were raised.
    pub rehashed: Option<DocumentSecret>,
    /// Purpose of the re-authentication or login.
    pub effect: ProofEffect,
}

/// Effect of a successful verification, in the transaction that finishes the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofEffect {
    /// A login, which creates this session.
    Session(NewSession),
    /// A change of the principal's own account, which must be the verified one.
    Own(OwnChange),
}

/// A change of the caller's own account after re-authentication. Each results in secrets with a new ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnChange {
    /// Verifier of a new password. All other sessions end.
    Password(SecretsId, DocumentSecret),
    /// New TOTP secret, pending confirmation. Replaces one that is already pending, and changes nothing else.
    PendingSeed(SecretsId, DocumentSecret),
    /// Recovery codes that replace all previous ones. All other sessions end, and a pending TOTP secret is deleted.
    RecoveryCodes {
        /// ID of the secrets.
        id: SecretsId,
        /// The same TOTP secret, with the new key of the recovery codes.
        seed: DocumentSecret,
        /// Digests of the codes.
        codes: Vec<Digest>,
    },
}

/// Outcome of finishing an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Success: the passcode is marked as used and the network as known. The bucket of the network and a locked shared
    /// bucket are reset.
    Completed,
    /// Refused for this reason and recorded.
    Refused(LoginRefusal),
    /// Refused and recorded. The wrong passcode disabled the account's time-based passcodes.
    PasscodeDisabled,
    /// The principal of [`ProofEffect::Own`] is no longer authorized, or belongs to another account
    /// ([`Denial::AccountChanged`]). The refusal is recorded.
    Denied(Denial),
}
