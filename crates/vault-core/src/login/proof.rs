//! Decision of login attempts and of re-authentications.

use super::{AttemptOutcome, FinishAttempt, VerifiedFactors, VerifiedProof};
use crate::account::Account;
use crate::audit::AuditAction;
use crate::lockout::{CLOSING_ATTEMPTS, WrongPasscodes};
use crate::notice::NoticeCode;
use crate::passcode::{PasscodeProof, TimeStep};
use crate::port::LoginRefusal;
use crate::principal::Denial;
use crate::time::Timestamp;

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

/// State of the account in the store when an attempt is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFacts {
    /// The account. `None` if it was deleted or its organization is not active.
    pub account: Option<Account>,
    /// Last used time step.
    pub last_step: TimeStep,
    /// Wrong passcodes since the last reset.
    pub wrong_passcodes: WrongPasscodes,
    /// True if the recovery code of the claim is stored.
    pub recovery_code_stored: bool,
}

/// Decides a claim that was reserved on `reserved`, if the attempt was counted.
///
/// # Errors
/// The reason why it is refused.
pub fn verify_proof(reserved: Option<&Account>, claim: Claim, facts: &ProofFacts) -> Result<(), LoginRefusal> {
    if claim == Claim::WrongPassword {
        return Err(LoginRefusal::WrongPassword);
    }
    if !reserved.zip(facts.account.as_ref()).is_some_and(|(reserved, account)| is_as_reserved(reserved, account)) {
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

/// Decision of an attempt.
#[derive(Clone, Debug)]
pub enum ProofOutcome<'a> {
    /// Success: the passcode is marked as used (a recovery code creates the notice `recovery-code-used`), a rehashed
    /// password stored, the network recorded, and the effect applied.
    Done(&'a VerifiedProof),
    /// Refused: these changes are written, even if the account was deleted.
    Refused(RefusedProof),
}

/// State to store after a refused attempt.
#[derive(Clone, Debug)]
pub struct RefusedProof {
    /// Outcome of the attempt.
    pub conclusion: AttemptOutcome,
    /// New count of wrong passcodes.
    pub wrong_passcodes: WrongPasscodes,
    /// Notices for the user of the account.
    pub notices: Vec<NoticeCode>,
    /// Actions of the audit entries, in order.
    pub actions: Vec<AuditAction>,
}

/// Decides a reserved attempt at `now`. `owner` is the authorization of a change of the own account, or `Ok` if there is
/// none.
pub fn conclude_proof<'a>(
    attempt: &'a FinishAttempt,
    facts: &ProofFacts,
    owner: Result<(), Denial>,
    now: Timestamp,
) -> ProofOutcome<'a> {
    if let Err(denial) = owner {
        let refused = refuse(attempt, facts, LoginRefusal::Overtaken, now);
        return ProofOutcome::Refused(RefusedProof { conclusion: AttemptOutcome::Denied(denial), ..refused });
    }
    match (verify_proof(attempt.reserved.as_ref(), attempt.presented.claim(), facts), &attempt.presented) {
        (Ok(()), VerifiedFactors::Proof(proof)) => ProofOutcome::Done(proof),
        (result, _) => {
            let refusal = result.err().unwrap_or(LoginRefusal::Overtaken);
            ProofOutcome::Refused(refuse(attempt, facts, refusal, now))
        }
    }
}

fn refuse(attempt: &FinishAttempt, facts: &ProofFacts, refusal: LoginRefusal, now: Timestamp) -> RefusedProof {
    let is_there = facts.account.is_some();
    let before = facts.wrong_passcodes;
    let counts = refusal == LoginRefusal::WrongPasscode && is_there;
    let wrong_passcodes = if counts { before.plus_one(now) } else { before };
    let disables = wrong_passcodes.disables() && !before.disables();
    let first = match refusal.follows_right_password() {
        true => AuditAction::LoginPasscodeRefused,
        false => AuditAction::LoginRefused,
    };
    let closes = attempt.attempts == CLOSING_ATTEMPTS;
    let closed = (closes && is_there).then_some(NoticeCode::LoginLocked);
    RefusedProof {
        conclusion: if disables { AttemptOutcome::PasscodeDisabled } else { AttemptOutcome::Refused(refusal) },
        wrong_passcodes,
        notices: closed.into_iter().chain(disables.then_some(NoticeCode::PasscodeDisabled)).collect(),
        actions: [
            Some(first),
            closes.then_some(AuditAction::LoginLocked),
            disables.then_some(AuditAction::LoginPasscodeDisabled),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

/// Returns whether an account still has the rights and secrets on which an attempt was reserved, and may log in.
pub fn is_as_reserved(reserved: &Account, account: &Account) -> bool {
    account.is_active() && account.grant == reserved.grant && account.secrets == reserved.secrets
}
