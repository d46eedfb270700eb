//! Verification of a user's address, password and passcode. Logins and all changes of the own account that require
//! re-authentication share it, and therefore its counters, lockouts and cost.
//!
//! Every attempt that is evaluated does the same work in the same order, whatever its outcome: one committed
//! reservation, one hash and one committed outcome. An attempt that is not counted is evaluated on the decoy account by
//! the same code.

use super::Accounts;
use crate::account::{OwnAccount, ReadOwnAccount};
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::{Digest, DigestPurpose};
use crate::email::EmailAddress;
use crate::error::{Error, Refusal};
use crate::hash_slots::Requester;
use crate::id::{AccountId, OrganizationId};
use crate::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS, ThrottleCounter, decoy_of};
use crate::login::{
    AttemptOutcome, FinishAttempt, FinishDecoy, NetworkIsKnown, OwnChange, ProofEffect, Reservation, ReserveAttempt,
    ReservedAccount, VerifiedFactors, VerifiedProof,
};
use crate::network::Network;
use crate::passcode::{Passcode, PasscodeProof};
use crate::password;
use crate::port::{Event, LoginRefusal, PasswordVerdict, SealError};
use crate::principal::{Principal, SessionPrincipal};
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
        let environment = &self.environment;
        let known = self.operations.run(environment, &Principal::Operator, NetworkIsKnown(network_digest)).await?;
        let permit = self.hasher.permit(Requester::Network { network: network_digest, known })?;
        let reservation = ReserveAttempt { address: email.clone(), decoy: attempt.decoy, network: network_digest };
        let decoy = &*self.decoy()?;
        let (reserved, uncounted) = match self.operations.run(environment, &Principal::Operator, reservation).await? {
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
            return Err(self.conclude_uncounted(uncounted, attempt, recovery_code).await?);
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

    /// Marks the factors as used and applies `effect`, in one transaction, for `principal`.
    ///
    /// # Errors
    /// [`Refusal::Contended`] if the effect was sealed with an instance key that was replaced. Nothing is marked as
    /// used.
    pub(super) async fn complete(
        &self,
        proven: &Proven,
        principal: &Principal,
        effect: ProofEffect,
    ) -> Result<(), Error> {
        let Proven { reserved, attempt, passcode, rehashed } = proven;
        let session = match &effect {
            ProofEffect::Session(session) => Some(session.id),
            ProofEffect::Own(_) => None,
        };
        // A verifier of the password that is replaced is not stored.
        let replaced = matches!(effect, ProofEffect::Own(OwnChange::Password(_)));
        let rehashed = rehashed.clone().filter(|_| !replaced);
        let proof = VerifiedFactors::Proof(Box::new(VerifiedProof { passcode: *passcode, rehashed, effect }));
        match self.try_conclude(reserved, *attempt, principal, proof).await? {
            AttemptOutcome::Completed => {
                let (account, network) = (reserved.signed.grant.account, attempt.network);
                if reserved.attempts > FREE_ATTEMPTS {
                    self.environment.emit(Event::LoginUnlocked { account, network });
                }
                self.environment.emit(Event::LoginSucceeded { account, session, network });
                Ok(())
            }
            refused => Err(self.conclusion(refused, reserved, *attempt)),
        }
    }

    /// Applies a change of the principal's own account after a successful verification.
    pub(super) async fn complete_own(
        &self,
        proven: &Proven,
        principal: &SessionPrincipal,
        change: OwnChange,
    ) -> Result<(), Error> {
        self.complete(proven, &Principal::Session(principal.clone()), ProofEffect::Own(change)).await
    }

    /// Reads the principal's own account from the store.
    pub(super) async fn own_account(&self, principal: &SessionPrincipal) -> Result<OwnAccount, Error> {
        let session = Principal::Session(principal.clone());
        self.operations.run(&self.environment, &session, ReadOwnAccount(principal.clone())).await
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
    ) -> Result<Error, Error> {
        let Uncounted { refusal, place } = uncounted;
        let decoy = FinishDecoy { decoy: attempt.decoy, recovery_code, actor: attempt.actor };
        self.operations.run(&self.environment, &Principal::Operator, decoy).await?;
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
        match self.try_conclude(reserved, attempt, &Principal::Operator, presented).await {
            Ok(conclusion) => self.conclusion(conclusion, reserved, attempt),
            Err(error) => error,
        }
    }

    async fn try_conclude(
        &self,
        reserved: &ReservedAccount,
        Attempt { actor, network_digest: network, .. }: Attempt,
        principal: &Principal,
        presented: VerifiedFactors,
    ) -> Result<AttemptOutcome, Error> {
        let (reserved, attempts) = (reserved.signed.clone(), reserved.attempts);
        let finish = FinishAttempt { reserved, attempts, presented, network, actor };
        self.operations.run(&self.environment, principal, finish).await
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
