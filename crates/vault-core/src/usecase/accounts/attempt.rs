//! Verification of a user's address, password and passcode. Logins and all changes of the own account that require
//! re-authentication share it, and therefore its counters, lockouts and cost.
//!
//! Every attempt that is evaluated does the same work in the same order, whatever its outcome: one committed
//! reservation, one hash and one committed outcome. An attempt that is not counted is evaluated on the decoy account by
//! the same code.

use super::Accounts;
use crate::audit::{Actor, AuditAction, RecordedRow, SealedAuditRecord, Subject};
use crate::digest::{Digest, DigestPurpose};
use crate::email::EmailAddress;
use crate::error::{Error, Refusal};
use crate::hash_slots::Requester;
use crate::id::{AccountId, OrganizationId};
use crate::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS, ThrottleCounter, decoy_of};
use crate::network::Network;
use crate::passcode::{Passcode, PasscodeProof};
use crate::password;
use crate::port::{
    AttemptOutcome, Event, FinishAccountAttempt, FinishAttempt, LoginRefusal, OwnAccount, OwnChange, PasswordVerdict,
    ProofEffect, RefusalRecords, Reservation, ReserveAttempt, ReservedAccount, RetryReason, SealError, VerifiedFactors,
    VerifiedProof,
};
use crate::principal::SessionPrincipal;
use crate::sealed::SealedPassword;
use crate::time::Timestamp;
use secrecy::{ExposeSecret, SecretString};

/// Factors that the user presents.
pub struct OwnerProof {
    /// The password, exactly as received.
    pub password: SecretString,
    /// The passcode, exactly as received.
    pub passcode: SecretString,
    /// Origin of the request.
    pub network: Network,
}

/// Actor and network of an attempt.
#[derive(Clone, Copy)]
struct Attempt {
    actor: Actor,
    network: Network,
    network_digest: Digest,
    decoy: u16,
    reserved_at: Timestamp,
}

/// Reason why an attempt is not counted, and the account if its address has one.
#[derive(Clone, Copy)]
struct Uncounted {
    refusal: LoginRefusal,
    place: Option<(OrganizationId, AccountId)>,
}

impl Uncounted {
    const UNKNOWN: Self = Self { refusal: LoginRefusal::UnknownAddress, place: None };

    const fn of(refusal: LoginRefusal, organization: OrganizationId, account: AccountId) -> Self {
        Self { refusal, place: Some((organization, account)) }
    }
}

/// A correct password with a passcode that may be unused. It is not accepted until the attempt is finished.
pub(super) struct Proven {
    pub(super) reserved: ReservedAccount,
    attempt: Attempt,
    passcode: PasscodeProof,
    rehashed: Option<SealedPassword>,
}

impl Accounts {
    /// Verifies the factors that `actor` presents for the account with the address `email`. The store confirms the
    /// result when the attempt is finished.
    pub(super) async fn evaluate(
        &self,
        email: &EmailAddress,
        actor: Actor,
        presented: OwnerProof,
    ) -> Result<Proven, Error> {
        let OwnerProof { password, passcode, network } = presented;
        if password.expose_secret().len() > password::MAX_BYTES {
            return Err(self.refused(LoginRefusal::Impossible, None, network));
        }
        let now = self.environment.now();
        let network_digest = self.digester.digest(DigestPurpose::Network, &[network.as_bytes()]);
        let attempt = Attempt { actor, network, network_digest, decoy: self.decoy_number(email), reserved_at: now };
        // Acquire a slot of the hash queue before the account is looked up, based only on the network. An overload then
        // looks the same for every address.
        let known = self.store.network_is_known(network_digest, now).await?;
        let permit = self.hasher.permit(Requester::Network { network: network_digest, known })?;
        let reservation =
            ReserveAttempt { address: self.address(email), decoy: attempt.decoy, network: network_digest, now };
        let decoy = &*self.decoy()?;
        let (reserved, uncounted) = match self.store.reserve_attempt(reservation).await? {
            Reservation::Account(reserved) => (*reserved, None),
            Reservation::Unknown => (decoy.clone(), Some(Uncounted::UNKNOWN)),
            Reservation::Throttled(organization, account) => {
                (decoy.clone(), Some(Uncounted::of(LoginRefusal::Throttled, organization, account)))
            }
            Reservation::Disabled(organization, account) => {
                (decoy.clone(), Some(Uncounted::of(LoginRefusal::Closed, organization, account)))
            }
        };
        self.digester.load_keys(&reserved.keys()).await?;
        let fits = reserved.signed.fits(&*self.digester, &reserved.digest);
        // Verify a decoy if the attempt was not counted or the MAC of the row does not verify: the same work, and
        // always wrong.
        let is_own = fits && uncounted.is_none();
        let own = if is_own { &reserved } else { decoy };
        if is_own {
            self.environment.emit(Event::PasswordEvaluated);
        }
        let account = own.signed.grant.account;
        let (owner, stored) = is_own.then(|| (account, own.password.clone())).unzip();
        let verdict = self.hasher.verify(permit, owner, password, stored).await?;
        // Check the passcode whatever the password is, so that the duration does not disclose the result.
        let found = self.look_at(own, &Passcode::read(&passcode))?;
        let recovery_code = found.and_then(PasscodeProof::recovery_code);
        if let Some(uncounted) = uncounted {
            return Err(self.conclude_uncounted(uncounted, attempt, recovery_code, &reserved).await?);
        }
        if !fits || matches!(verdict, PasswordVerdict::Damaged) {
            self.report_damage("accounts", reserved.signed.grant.account);
        }
        match (verdict, found) {
            (PasswordVerdict::Right { rehashed }, Some(passcode)) => {
                Ok(Proven { reserved, attempt, passcode, rehashed })
            }
            (PasswordVerdict::Right { .. }, None) => {
                Err(self.conclude(&reserved, attempt, VerifiedFactors::WrongPasscode).await)
            }
            (PasswordVerdict::Wrong | PasswordVerdict::Damaged, _) => {
                Err(self.conclude(&reserved, attempt, VerifiedFactors::WrongPassword { recovery_code }).await)
            }
        }
    }

    /// Marks the factors as used and applies `effect`, in one transaction. `audit` is the audit record of the effect.
    ///
    /// # Errors
    /// [`Refusal::Contended`] if the effect was sealed with an instance key that was replaced. Nothing is marked as
    /// used.
    pub(super) async fn complete(
        &self,
        proven: &Proven,
        effect: ProofEffect,
        audit: SealedAuditRecord,
    ) -> Result<(), Error> {
        let Proven { reserved, attempt, passcode, rehashed } = proven;
        let attempt = *attempt;
        let recorded_as = audit.record.id;
        let (session, recorded) = match &effect {
            ProofEffect::Session(session) => (Some(session.id), None),
            ProofEffect::Own { .. } => (None, Some(Event::recorded(&audit))),
        };
        let replaced = matches!(effect, ProofEffect::Own { change: OwnChange::Password { .. }, .. });
        // Drop a new verifier that was sealed with a key that is no longer active. A later login rehashes it.
        let rehashed = rehashed.clone().filter(|password| !replaced && self.is_under_active_key(password));
        let proof = VerifiedProof { passcode: *passcode, rehashed, effect, audit };
        let mut concluded = self.try_conclude(reserved, attempt, VerifiedFactors::Proof(Box::new(proof.clone()))).await;
        if proof.rehashed.is_some() && matches!(concluded, Err(Error::Refused(Refusal::Contended))) {
            self.environment.emit(Event::Retried(RetryReason::KeyReplaced));
            let proof = VerifiedProof { rehashed: None, ..proof };
            concluded = self.try_conclude(reserved, attempt, VerifiedFactors::Proof(Box::new(proof))).await;
        }
        match concluded? {
            AttemptOutcome::Completed => {
                let (account, network) = (reserved.signed.grant.account, attempt.network);
                if reserved.attempts > FREE_ATTEMPTS {
                    self.environment.emit(Event::LoginUnlocked { account, network });
                }
                self.environment.awaited.add([recorded_as]);
                self.environment.emit(Event::LoginSucceeded { account, session, network });
                recorded.into_iter().for_each(|recorded| self.environment.emit(recorded));
                Ok(())
            }
            refused => Err(self.conclusion(refused, reserved, attempt)),
        }
    }

    fn is_under_active_key(&self, password: &SealedPassword) -> bool {
        password.blob.key().is_none_or(|key| key == self.digester.active_key())
    }

    /// Applies a change of the principal's own account after a successful verification.
    pub(super) async fn complete_own(
        &self,
        proven: &Proven,
        principal: &SessionPrincipal,
        change: OwnChange,
        action: AuditAction,
    ) -> Result<(), Error> {
        let (now, actor, subject) =
            (self.environment.now(), Actor::from(principal), Subject::Account(principal.account));
        let affected = match &change {
            OwnChange::Password { after, .. } | OwnChange::RecoveryCodes { after, .. } => {
                subject.left(RecordedRow::Account, after.state(&*self.digester))
            }
            OwnChange::PendingSeed(_) => subject.into(),
        };
        let audit = self.environment.record(now, Some(principal.organization), actor, action, affected);
        self.complete(proven, ProofEffect::Own { principal: principal.clone(), change }, audit).await
    }

    /// Reads the principal's own account from the store.
    pub(super) async fn own_account(&self, principal: &SessionPrincipal) -> Result<OwnAccount, Error> {
        Ok(self.store.own_account(principal.clone(), self.environment.now()).await?)
    }

    /// Returns which code of the account the passcode is, used or not.
    fn look_at(&self, reserved: &ReservedAccount, passcode: &Passcode) -> Result<Option<PasscodeProof>, SealError> {
        let account = reserved.signed.grant.account;
        Ok(match passcode {
            Passcode::TimeBased(digits) => self
                .passcodes
                .matching_step(account, &reserved.seed, digits, self.environment.now())
                .inspect_err(|error| self.environment.report(error))?
                .map(PasscodeProof::Step),
            Passcode::Recovery(digits) => {
                let code = self.passcodes.recovery_code(account, &reserved.seed, digits);
                Some(PasscodeProof::RecoveryCode(code.inspect_err(|error| self.environment.report(error))?))
            }
            Passcode::Impossible => None,
        })
    }

    /// Finishes an attempt that was not counted, and returns its error.
    async fn conclude_uncounted(
        &self,
        uncounted: Uncounted,
        attempt: Attempt,
        recovery_code: Option<Digest>,
        decoy: &ReservedAccount,
    ) -> Result<Error, Error> {
        let Uncounted { refusal, place } = uncounted;
        let entry = Box::new(self.refusal_records(decoy, attempt.actor).refused);
        let decoy = FinishAttempt::Decoy { decoy: attempt.decoy, recovery_code, entry };
        self.store.finish_attempt(decoy).await?;
        self.count_uncounted(attempt.actor, place);
        Ok(self.refused(refusal, place.map(|(_, account)| account), attempt.network))
    }

    /// Counts a refusal that the store did not record. The audit log gets one entry per minute for each account, and
    /// one for all unknown addresses.
    fn count_uncounted(&self, actor: Actor, place: Option<(OrganizationId, AccountId)>) {
        let subject = place.map_or(Subject::UnknownAddresses, |(_, account)| Subject::Account(account));
        let organization = place.map(|(organization, _)| organization);
        self.tally.count(self.environment.now(), organization, actor, AuditAction::LoginThrottled, subject);
    }

    /// Finishes a failed attempt, and returns its error.
    async fn conclude(&self, reserved: &ReservedAccount, attempt: Attempt, presented: VerifiedFactors) -> Error {
        match self.try_conclude(reserved, attempt, presented).await {
            Ok(conclusion) => self.conclusion(conclusion, reserved, attempt),
            Err(error) => error,
        }
    }

    async fn try_conclude(
        &self,
        reserved: &ReservedAccount,
        attempt: Attempt,
        presented: VerifiedFactors,
    ) -> Result<AttemptOutcome, Error> {
        let command = FinishAccountAttempt {
            reserved: reserved.signed.clone(),
            presented,
            refusal: self.refusal_records(reserved, attempt.actor),
            network: attempt.network_digest,
            now: self.environment.now(),
        };
        Ok(self.store.finish_attempt(FinishAttempt::Account(Box::new(command))).await?)
    }

    fn refusal_records(&self, reserved: &ReservedAccount, actor: Actor) -> RefusalRecords {
        let (organization, account) = (reserved.signed.grant.organization, reserved.signed.grant.account);
        let now = self.environment.now();
        let record =
            |action| self.environment.record(now, Some(organization), actor, action, Subject::Account(account));
        RefusalRecords {
            refused: record(AuditAction::LoginRefused),
            passcode_refused: record(AuditAction::LoginPasscodeRefused),
            bucket_locked: (reserved.attempts == CLOSING_ATTEMPTS).then(|| record(AuditAction::LoginLocked)),
            passcode_disabled: record(AuditAction::LoginPasscodeDisabled),
        }
    }

    /// Returns the error of an outcome.
    fn conclusion(&self, conclusion: AttemptOutcome, reserved: &ReservedAccount, attempt: Attempt) -> Error {
        let (account, network) = (reserved.signed.grant.account, attempt.network);
        let refused = |refusal| self.refused(refusal, Some(account), network);
        let error = match conclusion {
            // A failed attempt has no effect that could complete.
            AttemptOutcome::Completed => refused(LoginRefusal::Overtaken),
            AttemptOutcome::Refused(refusal) => refused(refusal),
            AttemptOutcome::PasscodeDisabled => {
                let error = refused(LoginRefusal::WrongPasscode);
                self.environment.emit(Event::LoginPasscodeDisabled { account, network });
                error
            }
            AttemptOutcome::Denied(denial) => {
                let _ = refused(LoginRefusal::Overtaken);
                denial.into()
            }
        };
        let class = ThrottleCounter { attempts: reserved.attempts, latest: Some(attempt.reserved_at) };
        if class.attempts == CLOSING_ATTEMPTS {
            self.environment.emit(Event::LoginBucketLocked { account, network });
        } else if let Some(until) = class.waits_until(attempt.reserved_at) {
            self.environment.emit(Event::LoginLocked { account, network, attempts: class.attempts, until });
        }
        error
    }

    /// Emits the event of a refusal, and returns its error.
    pub(super) fn refused(&self, refusal: LoginRefusal, account: Option<AccountId>, network: Network) -> Error {
        self.environment.emit(Event::LoginRefused { refusal, account, network });
        Refusal::InvalidLogin.into()
    }

    fn decoy_number(&self, email: &EmailAddress) -> u16 {
        decoy_of(&self.digester.digest(DigestPurpose::AttemptBucket, &[email.as_str().as_bytes()]))
    }
}
