//! Decision of login attempts and of re-authentications.

use crate::account::{AccountState, SignedAccount};
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::KeyId;
use crate::lockout::WrongPasscodes;
use crate::notice::NoticeCode;
use crate::passcode::{PasscodeProof, TimeStep};
use crate::port::{
    AttemptOutcome, FinishAccountAttempt, LoginRefusal, OwnChange, ProofEffect, VerifiedFactors, VerifiedProof,
};
use crate::principal::{Denial, SessionPrincipal};

/// Outcome of checking password and passcode without the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Wrong password.
    WrongPassword,
    /// Correct password with a passcode that matches no code of the account.
    WrongPasscode,
    /// Correct password with a code of the account. The store decides whether the code is unused.
    Passcode(PasscodeProof),
}

impl VerifiedFactors {
    /// Returns the factors in the form for [`verify_proof`].
    pub const fn claim(&self) -> Claim {
        match self {
            Self::WrongPassword { .. } => Claim::WrongPassword,
            Self::WrongPasscode => Claim::WrongPasscode,
            Self::Proof(proof) => Claim::Passcode(proof.passcode),
        }
    }

    /// Returns the instance keys that sealed and signed the changes, or none if nothing is changed.
    pub fn instance_keys(&self) -> Vec<KeyId> {
        let Self::Proof(proof) = self else { return Vec::new() };
        let rehashed = proof.rehashed.as_ref().and_then(|password| password.blob.key());
        let changed = match &proof.effect {
            ProofEffect::Own { change: OwnChange::Password { password, digest, .. }, .. } => {
                [password.blob.key(), Some(digest.key)]
            }
            ProofEffect::Own { change: OwnChange::PendingSeed(pending), .. } => {
                [pending.seed.blob.key(), Some(pending.digest.key)]
            }
            ProofEffect::Own { change: OwnChange::RecoveryCodes { seed, digest, .. }, .. } => {
                [seed.blob.key(), Some(digest.key)]
            }
            ProofEffect::Session(_) => [None, None],
        };
        rehashed.into_iter().chain(changed.into_iter().flatten()).collect()
    }

    /// Returns the recovery code to look up, even if it cannot be accepted.
    pub const fn recovery_code(&self) -> Option<Digest> {
        match self {
            Self::WrongPassword { recovery_code } => *recovery_code,
            Self::WrongPasscode => None,
            Self::Proof(proof) => proof.passcode.recovery_code(),
        }
    }
}

/// State of the account in the store when an attempt is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFacts {
    /// The account. `None` if it was deleted or its organization is not active.
    pub account: Option<SignedAccount>,
    /// Last used time step.
    pub last_step: TimeStep,
    /// Wrong passcodes since the last reset.
    pub wrong_passcodes: WrongPasscodes,
    /// Whether the recovery code of the claim is stored.
    pub recovery_code_stored: bool,
}

/// Decides a claim that was reserved on `reserved`.
///
/// # Errors
/// The reason why it is refused.
pub fn verify_proof(reserved: &SignedAccount, claim: Claim, facts: &ProofFacts) -> Result<(), LoginRefusal> {
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
        Claim::Passcode(PasscodeProof::Step(step)) if step <= facts.last_step => Err(LoginRefusal::ReusedPasscode),
        Claim::Passcode(PasscodeProof::RecoveryCode(_)) if !facts.recovery_code_stored => {
            Err(LoginRefusal::WrongPasscode)
        }
        Claim::Passcode(_) => Ok(()),
    }
}

/// Outcome of finishing an attempt.
#[derive(Clone, Debug)]
pub enum ProofOutcome<'a> {
    /// Success: the store marks the passcode as used (a recovery code creates the notice `recovery-code-used`), stores
    /// a rehashed password, records the network, applies the effect and stores [`VerifiedProof::audit`].
    Done(&'a VerifiedProof),
    /// Refused: the store writes these changes, even if the account was deleted.
    Refused(RefusedProof<'a>),
}

/// State to store after a refused attempt.
#[derive(Clone, Debug)]
pub struct RefusedProof<'a> {
    /// Outcome of the attempt.
    pub conclusion: AttemptOutcome,
    /// New count of wrong passcodes.
    pub wrong_passcodes: WrongPasscodes,
    /// Notices for the user of the account.
    pub notices: Vec<NoticeCode>,
    /// Audit entries, in order.
    pub records: Vec<&'a SealedAuditRecord>,
}

/// Decides a reserved attempt. `owner` is the authorization of the principal of [`ProofEffect::Own`], or `Ok` if there
/// is none.
pub fn conclude_proof<'a>(
    command: &'a FinishAccountAttempt,
    facts: &ProofFacts,
    owner: Result<(), Denial>,
) -> ProofOutcome<'a> {
    let grant = &command.reserved.grant;
    let is_own = |principal: &SessionPrincipal| {
        (principal.organization, principal.account) == (grant.organization, grant.account)
    };
    let owner = match &command.presented {
        VerifiedFactors::Proof(proof) => match &proof.effect {
            ProofEffect::Own { principal, .. } if !is_own(principal) => owner.and(Err(Denial::AccountChanged)),
            ProofEffect::Own { .. } | ProofEffect::Session(_) => owner,
        },
        VerifiedFactors::WrongPassword { .. } | VerifiedFactors::WrongPasscode => owner,
    };
    if let Err(denial) = owner {
        let refused = refuse(command, facts, LoginRefusal::Overtaken);
        return ProofOutcome::Refused(RefusedProof { conclusion: AttemptOutcome::Denied(denial), ..refused });
    }
    match (verify_proof(&command.reserved, command.presented.claim(), facts), &command.presented) {
        (Ok(()), VerifiedFactors::Proof(proof)) if is_current(proof, facts) => ProofOutcome::Done(proof),
        (result, _) => {
            let refusal = result.err().unwrap_or(LoginRefusal::Overtaken);
            ProofOutcome::Refused(refuse(command, facts, refusal))
        }
    }
}

/// Returns whether a row that is to be signed again is unchanged since the decision.
fn is_current(proof: &VerifiedProof, facts: &ProofFacts) -> bool {
    match &proof.effect {
        ProofEffect::Own {
            change: OwnChange::Password { after, .. } | OwnChange::RecoveryCodes { after, .. }, ..
        } => facts.account.as_ref().is_some_and(|account| account.version + 1 == after.version),
        ProofEffect::Own { .. } | ProofEffect::Session(_) => true,
    }
}

fn refuse<'a>(command: &'a FinishAccountAttempt, facts: &ProofFacts, refusal: LoginRefusal) -> RefusedProof<'a> {
    let records = &command.refusal;
    let is_there = facts.account.is_some();
    let before = facts.wrong_passcodes;
    let counts = refusal == LoginRefusal::WrongPasscode && is_there;
    let wrong_passcodes = if counts { before.plus_one(command.now) } else { before };
    let disables = wrong_passcodes.disables() && !before.disables();
    let first = if refusal.follows_right_password() { &records.passcode_refused } else { &records.refused };
    let closed = records.bucket_locked.as_ref();
    let closes = (closed.is_some() && is_there).then_some(NoticeCode::LoginLocked);
    RefusedProof {
        conclusion: if disables { AttemptOutcome::PasscodeDisabled } else { AttemptOutcome::Refused(refusal) },
        wrong_passcodes,
        notices: closes.into_iter().chain(disables.then_some(NoticeCode::PasscodeDisabled)).collect(),
        records: [Some(first), closed, disables.then_some(&records.passcode_disabled)].into_iter().flatten().collect(),
    }
}

/// Returns whether an account still has the facts on which an attempt was reserved, and may log in. Changes of other
/// fields than password, TOTP secret and rights do not matter.
pub fn is_as_reserved(reserved: &SignedAccount, account: &SignedAccount) -> bool {
    account.grant.state == AccountState::Active
        && account.grant == reserved.grant
        && account.password == reserved.password
        && account.seed == reserved.seed
}
