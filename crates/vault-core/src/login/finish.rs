//! The end of an attempt, decided on the current rows. A refusal executes the same statements and locks, whatever its reason.

use super::{
    AttemptOutcome, Claim, DECOY, OwnChange, ProofEffect, ProofFacts, ProofOutcome, RefusedProof, VerifiedFactors,
    VerifiedProof, conclude_proof,
};
use crate::account::{Account, AccountSecrets, put};
use crate::audit::{Actor, Affected, AuditAction, Subject};
use crate::digest::Digest;
use crate::entity::{EntityKey, Kind, Opened};
use crate::lockout::{BucketKey, NETWORK_NOTED_SECONDS, ThrottleCounter};
use crate::notice::NoticeCode;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::organization::OrganizationState;
use crate::passcode::{PENDING_SECONDS, PasscodeProof, PendingSeed};
use crate::port::AccountPlace;
use crate::principal::{Denial, Principal};
use futures_util::try_join;

/// Finishes an attempt. Records a refusal of one that was counted, even if the account has been deleted. Only
/// [`ProofEffect::Session`] counts as the last login of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishAttempt {
    /// The account as reserved. `None` if the attempt was not counted: it is refused on the decoy account, without an entry.
    pub reserved: Option<Account>,
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
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.place().0));

    async fn run(&self, unit: &Unit<'_>) -> Result<AttemptOutcome, Failure> {
        let rows = unit.rows();
        let place @ (organization, account) = self.place();
        let code = async {
            match self.presented.recovery_code() {
                Some(code) => rows.lock_recovery_code(place, &code).await,
                None => Ok(false),
            }
        };
        // The state is read from the value that leads to the organization. A refusal discloses none of these facts, so none of
        // its statements depends on them.
        let key = EntityKey { organization, kind: Kind::Account, id: *account.as_uuid() };
        let (state, row, (last_step, wrong_passcodes), recovery_code_stored) =
            try_join!(rows.organization_state(organization), rows.entity(key), rows.lock_logins(place), code)?;
        let opened = row.map(|row| unit.open_or_report::<Account>(&row)).transpose()?.flatten();
        let current = opened.filter(|_| state == Some(OrganizationState::Active));
        let account = current.as_deref().cloned();
        let facts = ProofFacts { account, last_step, wrong_passcodes, recovery_code_stored };
        let owner = self.authorize_owner(unit).await?;
        match (conclude_proof(self, &facts, owner, unit.now()), current) {
            (ProofOutcome::Done(proof), Some(current)) => {
                self.complete(unit, &current, proof).await?;
                Ok(AttemptOutcome::Completed)
            }
            (ProofOutcome::Done(_), None) => Err(Denial::AccountChanged.into()),
            (ProofOutcome::Refused(refused), _) => {
                self.refuse(unit, &refused).await?;
                Ok(refused.conclusion)
            }
        }
    }
}

impl FinishAttempt {
    fn place(&self) -> AccountPlace {
        self.reserved.as_ref().map_or(DECOY, Account::place)
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
        if self.reserved.is_none() {
            // Instead of the entry.
            let subject = Affected::from(Subject::Account(account));
            let _sealed = unit.seal_entry(self.actor, Some(organization), AuditAction::LoginRefused, subject);
            let written = ThrottleCounter { attempts: 0, latest: Some(unit.now()) };
            unit.rows().set_bucket(place, &BucketKey::Shared, written).await?;
            unit.commit_without_entry();
            return Ok(());
        }
        for action in &refused.actions {
            unit.record_as(self.actor, Some(organization), *action, Subject::Account(account).into()).await?;
        }
        for notice in &refused.notices {
            unit.rows().leave_notice(place, *notice, unit.now()).await?;
        }
        Ok(())
    }

    async fn complete(&self, unit: &Unit<'_>, current: &Opened<Account>, proof: &VerifiedProof) -> Result<(), Failure> {
        let (rows, now) = (unit.rows(), unit.now());
        let place @ (organization, account) = self.place();
        match proof.passcode {
            PasscodeProof::Step(step) => rows.set_last_step(place, step).await?,
            PasscodeProof::RecoveryCode(code) => {
                rows.remove_recovery_code(place, &code).await?;
                rows.leave_notice(place, NoticeCode::RecoveryCodeUsed, now).await?;
            }
        }
        self.record_network(unit).await?;
        if let Some(rehashed) = &proof.rehashed {
            let secrets = self.secrets(unit, current).await?;
            put(unit, place, &AccountSecrets { password: rehashed.clone(), ..secrets }).await?;
        }
        match &proof.effect {
            ProofEffect::Session(session) => {
                rows.set_last_login(place, now).await?;
                rows.insert_session(place, session).await?;
                let (actor, subject) = (Actor::Account(account, session.id), Subject::Session(session.id));
                unit.record_as(actor, Some(organization), AuditAction::LoginSucceeded, subject.into()).await
            }
            ProofEffect::Own(change) => self.change_own(unit, current, change).await,
        }
    }

    /// Returns the secrets that the account names.
    async fn secrets(&self, unit: &Unit<'_>, current: &Account) -> Result<AccountSecrets, Failure> {
        let (organization, account) = current.place();
        let secrets = unit.find::<AccountSecrets>(organization, *account.as_uuid()).await?;
        let secrets = secrets.filter(|secrets| current.secrets == Some(secrets.id)).map(Opened::into_value);
        let key = EntityKey { organization, kind: Kind::AccountSecrets, id: *account.as_uuid() };
        secrets.ok_or(Failure::Damaged { key, reason: "the account names other secrets" })
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

    async fn change_own(&self, unit: &Unit<'_>, current: &Opened<Account>, change: &OwnChange) -> Result<(), Failure> {
        let (rows, place @ (organization, account)) = (unit.rows(), self.place());
        let Principal::Session(own) = unit.principal() else { return Err(Denial::InsufficientRole.into()) };
        let subject = Subject::Account(account).into();
        let before = self.secrets(unit, current).await?;
        let (action, secrets) = match change {
            OwnChange::PendingSeed(id, seed) => {
                let (id, seed, expires_at) = (*id, seed.clone(), unit.now().plus_seconds(PENDING_SECONDS));
                put(unit, place, &PendingSeed { id, seed, expires_at, tried: 0 }).await?;
                return unit.record(Some(organization), AuditAction::AccountPasscodeDrafted, subject).await;
            }
            OwnChange::Password(id, password) => {
                let secrets = AccountSecrets { id: *id, password: password.clone(), ..before };
                (AuditAction::AccountPasswordChanged, secrets)
            }
            OwnChange::RecoveryCodes { id, seed, codes } => {
                rows.replace_recovery_codes(place, codes).await?;
                // It has the previous key of the recovery codes.
                unit.remove::<PendingSeed>(organization, *account.as_uuid()).await?;
                let secrets = AccountSecrets { id: *id, seed: seed.clone(), ..before };
                (AuditAction::AccountRecoveryCodesReplaced, secrets)
            }
        };
        put(unit, place, &secrets).await?;
        unit.replace(current, &current.with_secrets(secrets.id).keeping(own.session)).await?;
        rows.end_other_sessions(place, own.session).await?;
        unit.record(Some(organization), action, subject).await
    }
}
