//! The rule of every proof that an account's owner is present, a login first of all.

use crate::account::{AccountState, SignedAccount};
use crate::digest::Digest;
use crate::id::KeyId;
use crate::lockout::WrongPasscodes;
use crate::passcode::{PasscodeProof, TimeStep};
use crate::port::{Brought, LoginRefusal, OwnChange, ProofEffect};

/// The outcome of checking password and passcode without the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The password is wrong.
    WrongPassword,
    /// The password is right; the passcode is of none of the account's codes.
    WrongPasscode,
    /// The password is right, and the passcode is a code of the account; the store decides whether it is unused.
    Passcode(PasscodeProof),
}

impl Brought {
    /// What was brought, for [`judge_proof`].
    pub const fn claim(&self) -> Claim {
        match self {
            Self::WrongPassword { .. } => Claim::WrongPassword,
            Self::WrongPasscode => Claim::WrongPasscode,
            Self::Proof(proof) => Claim::Passcode(proof.passcode),
        }
    }

    /// The instance keys that what it changes is sealed and signed under; none where it changes nothing.
    pub fn instance_keys(&self) -> Vec<KeyId> {
        let Self::Proof(proof) = self else { return Vec::new() };
        let rehashed = proof.rehashed.as_ref().and_then(|password| password.0.key());
        let changed = match &proof.effect {
            ProofEffect::Own { change: OwnChange::Password { password, digest, .. }, .. } => {
                [password.0.key(), Some(digest.key)]
            }
            ProofEffect::Own { change: OwnChange::PendingSeed { seed, .. }, .. } => [seed.blob.key(), None],
            ProofEffect::Own { change: OwnChange::RecoveryCodes(_), .. } | ProofEffect::Session(_) => [None, None],
        };
        rehashed.into_iter().chain(changed.into_iter().flatten()).collect()
    }

    /// The recovery code to look up, whether it can prove anything or not.
    pub const fn recovery_code(&self) -> Option<Digest> {
        match self {
            Self::WrongPassword { recovery_code } => *recovery_code,
            Self::WrongPasscode => None,
            Self::Proof(proof) => proof.passcode.recovery_code(),
        }
    }
}

/// What the store holds of the account when an attempt is concluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFacts {
    /// The account; absent if it is gone or its organization is not active.
    pub account: Option<SignedAccount>,
    /// The latest used step.
    pub last_step: TimeStep,
    /// Wrong passcodes since the latest reset.
    pub wrong_passcodes: WrongPasscodes,
    /// Whether the recovery code of the claim is stored.
    pub recovery_code_stored: bool,
}

/// Judges a claim that was reserved on `reserved`.
///
/// # Errors
/// Why it proves nothing.
pub fn judge_proof(reserved: &SignedAccount, claim: Claim, facts: &ProofFacts) -> Result<(), LoginRefusal> {
    if claim == Claim::WrongPassword {
        return Err(LoginRefusal::WrongPassword);
    }
    if !facts.account.as_ref().is_some_and(|account| is_as_reserved(reserved, account)) {
        return Err(LoginRefusal::Overtaken);
    }
    match claim {
        Claim::WrongPassword => Err(LoginRefusal::WrongPassword),
        Claim::WrongPasscode => Err(LoginRefusal::WrongPasscode),
        Claim::Passcode(PasscodeProof::Step(_)) if facts.wrong_passcodes.disables() => {
            Err(LoginRefusal::PasscodeDisabled)
        }
        Claim::Passcode(PasscodeProof::Step(step)) if step <= facts.last_step => Err(LoginRefusal::SpentPasscode),
        Claim::Passcode(PasscodeProof::RecoveryCode(_)) if !facts.recovery_code_stored => {
            Err(LoginRefusal::WrongPasscode)
        }
        Claim::Passcode(_) => Ok(()),
    }
}

/// Whether an account still says what an attempt was reserved on, and may log in. A change that touches neither
/// password nor seed nor what the account grants leaves it so.
pub fn is_as_reserved(reserved: &SignedAccount, account: &SignedAccount) -> bool {
    account.grant.state == AccountState::Active
        && account.grant == reserved.grant
        && account.password_version == reserved.password_version
        && account.seed == reserved.seed
}
