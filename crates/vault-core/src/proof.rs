//! The rule of every proof that an account's owner is present, a login first of all.

use crate::account::{AccountState, SignedAccount};
use crate::audit::SealedAuditRecord;
use crate::digest::Digest;
use crate::id::KeyId;
use crate::lockout::WrongPasscodes;
use crate::notice::NoticeCode;
use crate::passcode::{PasscodeProof, TimeStep};
use crate::port::{ConcludeProof, Conclusion, LoginRefusal, OwnChange, ProofEffect, VerifiedFactors, VerifiedProof};
use crate::principal::{Denial, SessionPrincipal};

/// Outcome of checking password and passcode without the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The password is wrong.
    WrongPassword,
    /// The password is right; the passcode is of none of the account's codes.
    WrongPasscode,
    /// The password is right, and the passcode is a code of the account; the store decides whether it is unused.
    Passcode(PasscodeProof),
}

impl VerifiedFactors {
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

/// What concluding an attempt comes to.
#[derive(Clone, Debug)]
pub enum ProofOutcome<'a> {
    /// Carried out: the store spends the passcode (a recovery code leaves the notice `recovery-code-used`), stores a rehashed
    /// password, notes the network, carries out the effect and records [`VerifiedProof::audit`].
    Done(&'a VerifiedProof),
    /// Refused: the store writes what this says, also if the account is gone by now.
    Refused(RefusedProof<'a>),
}

/// What a refusal writes.
#[derive(Clone, Debug)]
pub struct RefusedProof<'a> {
    /// The answer.
    pub conclusion: Conclusion,
    /// The wrong passcodes that count from now on.
    pub wrong_passcodes: WrongPasscodes,
    /// The notices that the account's owner gets.
    pub notices: Vec<NoticeCode>,
    /// The entries of the audit, in their order.
    pub records: Vec<&'a SealedAuditRecord>,
}

/// Decides an attempt that was reserved. `owner`: whether the principal of [`ProofEffect::Own`] may act; `Ok` where there is
/// none.
pub fn conclude_proof<'a>(
    command: &'a ConcludeProof,
    facts: &ProofFacts,
    owner: Result<(), Denial>,
) -> ProofOutcome<'a> {
    let grant = &command.reserved.grant;
    let is_own = |principal: &SessionPrincipal| {
        (principal.organization, principal.account) == (grant.organization, grant.account)
    };
    let owner = match &command.brought {
        VerifiedFactors::Proof(proof) => match &proof.effect {
            ProofEffect::Own { principal, .. } if !is_own(principal) => owner.and(Err(Denial::AccountChanged)),
            ProofEffect::Own { .. } | ProofEffect::Session(_) => owner,
        },
        VerifiedFactors::WrongPassword { .. } | VerifiedFactors::WrongPasscode => owner,
    };
    if let Err(denial) = owner {
        let refused = refuse(command, facts, LoginRefusal::Overtaken);
        return ProofOutcome::Refused(RefusedProof { conclusion: Conclusion::Denied(denial), ..refused });
    }
    match (judge_proof(&command.reserved, command.brought.claim(), facts), &command.brought) {
        (Ok(()), VerifiedFactors::Proof(proof)) if is_current(proof, facts) => ProofOutcome::Done(proof),
        (judgement, _) => {
            let refusal = judgement.err().unwrap_or(LoginRefusal::Overtaken);
            ProofOutcome::Refused(refuse(command, facts, refusal))
        }
    }
}

/// Whether a row that is to be signed anew is still the one that this was decided on.
fn is_current(proof: &VerifiedProof, facts: &ProofFacts) -> bool {
    match &proof.effect {
        ProofEffect::Own { change: OwnChange::Password { after, .. }, .. } => {
            facts.account.as_ref().is_some_and(|account| account.version + 1 == after.version)
        }
        ProofEffect::Own { .. } | ProofEffect::Session(_) => true,
    }
}

fn refuse<'a>(command: &'a ConcludeProof, facts: &ProofFacts, refusal: LoginRefusal) -> RefusedProof<'a> {
    let records = &command.refusal;
    let is_there = facts.account.is_some();
    let before = facts.wrong_passcodes;
    let counts = refusal == LoginRefusal::WrongPasscode && is_there;
    let wrong_passcodes = if counts { before.plus_one(command.now) } else { before };
    let disables = wrong_passcodes.disables() && !before.disables();
    let first = if refusal.follows_right_password() { &records.passcode_refused } else { &records.refused };
    let closed = records.class_closed.as_ref();
    let closes = (closed.is_some() && is_there).then_some(NoticeCode::AttemptsClosed);
    RefusedProof {
        conclusion: if disables { Conclusion::PasscodeDisabled } else { Conclusion::Refused(refusal) },
        wrong_passcodes,
        notices: closes.into_iter().chain(disables.then_some(NoticeCode::PasscodeDisabled)).collect(),
        records: [Some(first), closed, disables.then_some(&records.passcode_disabled)].into_iter().flatten().collect(),
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
