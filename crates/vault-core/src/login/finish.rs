//! The end of an attempt on an account, decided on the current rows. A refusal executes the same statements and locks,
//! whatever its reason.

use super::{
    AttemptOutcome, Claim, OwnChange, ProofEffect, ProofFacts, ProofOutcome, RefusedProof, VerifiedFactors,
    VerifiedProof, conclude_proof,
};
use crate::account::{SignedAccount, sign_account};
use crate::audit::{Actor, AuditAction, RecordedRow, Subject};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{AccountId, KeyId, OrganizationId};
use crate::lockout::{BucketKey, NETWORK_NOTED_SECONDS, ThrottleCounter};
use crate::notice::NoticeCode;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::OrganizationState;
use crate::passcode::{PENDING_SECONDS, PasscodeProof, PendingSeed};
use crate::principal::{Denial, Principal};
use crate::sealed::Blob;
use futures_util::try_join;

/// Finishes an attempt that was counted. Records a refusal even if the account has been deleted. Only
/// [`ProofEffect::Session`] counts as the last login of the account.
///
/// # Errors
/// [`Refusal::Contended`] if the change of the own account was sealed with an instance key that is no longer active.
/// Nothing is marked as used then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishAttempt {
    /// The account as reserved. Its MAC verified.
    pub reserved: SignedAccount,
    /// Consecutive attempts in the bucket of this attempt, including this one.
    pub attempts: u32,
    /// The presented factors.
    pub presented: VerifiedFactors,
    /// Digest of the network.
    pub network: Digest,
    /// Actor in the entries of a refusal.
    pub actor: Actor,
}

impl VerifiedFactors {
    /// Returns the factors in the form for [`verify_proof`](super::verify_proof).
    pub const fn claim(&self) -> Claim {
        match self {
            Self::WrongPassword { .. } => Claim::WrongPassword,
            Self::WrongPasscode => Claim::WrongPasscode,
            Self::Proof(proof) => Claim::Passcode(proof.passcode),
        }
    }

    /// Returns the recovery code to look up, even if it cannot be accepted.
    const fn recovery_code(&self) -> Option<Digest> {
        match self {
            Self::WrongPassword { recovery_code } => *recovery_code,
            Self::WrongPasscode => None,
            Self::Proof(proof) => proof.passcode.recovery_code(),
        }
    }

    /// Returns the change of the own account.
    const fn own_change(&self) -> Option<&OwnChange> {
        match self {
            Self::Proof(proof) => match &proof.effect {
                ProofEffect::Own(change) => Some(change),
                ProofEffect::Session(_) => None,
            },
            Self::WrongPassword { .. } | Self::WrongPasscode => None,
        }
    }
}

impl Operation for FinishAttempt {
    type Outcome = AttemptOutcome;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.reserved.grant.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<AttemptOutcome, Failure> {
        let rows = unit.rows();
        let place @ (organization, _) = self.place();
        let code = async {
            match self.presented.recovery_code() {
                Some(code) => rows.lock_recovery_code(place, &code).await,
                None => Ok(false),
            }
        };
        // From the value that leads to the organization, so that no attempt opens a document. A refusal discloses none of
        // these facts, so none of its statements depends on them.
        let (state, account, (last_step, wrong_passcodes), recovery_code_stored) =
            try_join!(rows.organization_state(organization), rows.account(place), rows.lock_logins(place), code)?;
        let account = account.map(|(signed, _)| signed).filter(|_| state == Some(OrganizationState::Active));
        let facts = ProofFacts { account, last_step, wrong_passcodes, recovery_code_stored };
        let owner = self.authorize_owner(unit).await?;
        match conclude_proof(self, &facts, owner, unit.now()) {
            ProofOutcome::Done(proof) => {
                self.complete(unit, proof).await?;
                Ok(AttemptOutcome::Completed)
            }
            ProofOutcome::Refused(refused) => {
                self.refuse(unit, &refused).await?;
                Ok(refused.conclusion)
            }
        }
    }
}

impl FinishAttempt {
    fn place(&self) -> (OrganizationId, AccountId) {
        (self.reserved.grant.organization, self.reserved.grant.account)
    }

    /// Authorizes a change of the principal's own account.
    async fn authorize_owner(&self, unit: &Unit<'_>) -> Result<Result<(), Denial>, Failure> {
        if self.presented.own_change().is_none() {
            return Ok(Ok(()));
        }
        match (unit.authorize().await, unit.principal()) {
            (Err(Failure::Denied(denial)), _) => Ok(Err(denial)),
            (Err(failure), _) => Err(failure),
            (Ok(()), Principal::Session(own)) if (own.organization, own.account) == self.place() => Ok(Ok(())),
            (Ok(()), _) => Ok(Err(Denial::AccountChanged)),
        }
    }

    /// Records a refusal, also if the account no longer exists: the refusal happened.
    async fn refuse(&self, unit: &Unit<'_>, refused: &RefusedProof) -> Result<(), Failure> {
        let place @ (organization, account) = self.place();
        unit.rows().set_refused(place, refused.wrong_passcodes, unit.now()).await?;
        for action in &refused.actions {
            unit.record_as(self.actor, Some(organization), *action, Subject::Account(account).into()).await?;
        }
        // Here, where the account is locked, and not with the reservation, which locks the bucket. A notice locks its
        // account, and a transaction that unlocks buckets locks the account before them.
        for notice in &refused.notices {
            unit.rows().leave_notice(place, *notice, unit.now()).await?;
        }
        Ok(())
    }

    async fn complete(&self, unit: &Unit<'_>, proof: &VerifiedProof) -> Result<(), Failure> {
        let (rows, now) = (unit.rows(), unit.now());
        let place @ (organization, account) = self.place();
        // None of the sealed values is stored if another key became active meanwhile.
        let active = match (&proof.effect, &proof.rehashed) {
            (ProofEffect::Session(_), None) => None,
            _ => rows.active_instance_key().await?,
        };
        match proof.passcode {
            PasscodeProof::Step(step) => rows.set_last_step(place, step).await?,
            PasscodeProof::RecoveryCode(code) => {
                rows.remove_recovery_code(place, &code).await?;
                rows.leave_notice(place, NoticeCode::RecoveryCodeUsed, now).await?;
            }
        }
        self.record_network(unit).await?;
        if let Some(rehashed) = proof.rehashed.as_ref().filter(|password| is_under(active, &password.blob)) {
            rows.set_password(place, &rehashed.blob).await?;
        }
        match &proof.effect {
            ProofEffect::Session(session) => {
                rows.set_last_login(place, now).await?;
                rows.insert_session(place, session).await?;
                let (actor, subject) = (Actor::Account(account, session.id), Subject::Session(session.id));
                unit.record_as(actor, Some(organization), AuditAction::LoginSucceeded, subject.into()).await
            }
            ProofEffect::Own(change) if !is_under(active, change.sealed()) => Err(Refusal::Contended.into()),
            ProofEffect::Own(change) => self.change_own(unit, change).await,
        }
    }

    /// Resets the bucket of the network, which is known from now on.
    async fn record_network(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let (rows, now, place) = (unit.rows(), unit.now(), self.place());
        let counters = rows.lock_buckets(place, None).await?.unwrap_or_default();
        let after = counters.after_login(&self.network, now);
        if after.resets_shared {
            rows.set_bucket(place, &BucketKey::Shared, ThrottleCounter::default()).await?;
        }
        for forgotten in &after.forgotten {
            rows.forget_network(place, forgotten).await?;
        }
        rows.put_network(place, &self.network, now).await?;
        rows.note_network(&self.network, now, now.plus_seconds(-NETWORK_NOTED_SECONDS)).await?;
        Ok(())
    }

    async fn change_own(&self, unit: &Unit<'_>, change: &OwnChange) -> Result<(), Failure> {
        let (rows, place, reserved) = (unit.rows(), self.place(), &self.reserved);
        let Principal::Session(own) = unit.principal() else { return Err(Denial::InsufficientRole.into()) };
        let subject = Subject::Account(place.1);
        let (action, after) = match change {
            OwnChange::PendingSeed(seed) => {
                let expires_at = unit.now().plus_seconds(PENDING_SECONDS);
                let pending = PendingSeed::sign(place, seed.clone(), expires_at, unit.digester());
                unit.require_active_key(pending.digest.key).await?;
                rows.put_pending_seed(place, &pending).await?;
                let action = AuditAction::AccountPasscodeDrafted;
                return unit.record(Some(place.0), action, subject.into()).await;
            }
            OwnChange::Password(password) => {
                rows.set_password(place, &password.blob).await?;
                (AuditAction::AccountPasswordChanged, reserved.with_password(password.id))
            }
            OwnChange::RecoveryCodes { seed, codes } => {
                rows.set_seed(place, &seed.blob).await?;
                rows.replace_recovery_codes(place, codes).await?;
                // It has the previous key of the recovery codes.
                rows.remove_pending_seed(place).await?;
                (AuditAction::AccountRecoveryCodesReplaced, reserved.with_seed(seed.id))
            }
        };
        let state = sign_account(unit, &after.keeping(own.session)).await?;
        rows.end_other_sessions(place, own.session).await?;
        unit.record(Some(place.0), action, subject.left(RecordedRow::Account, state)).await
    }
}

/// Returns whether a value was sealed with the active key. A vault without an instance has no key to compare with.
fn is_under(active: Option<KeyId>, sealed: &Blob) -> bool {
    active.is_none_or(|active| sealed.key().is_none_or(|key| key == active))
}
