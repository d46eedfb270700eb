//! Verification of a user's address, password and passcode. Logins and all changes of the own account that require
//! re-authentication share it, and therefore its counters, lockouts and cost.
//!
//! Every attempt that is evaluated does the same work in the same order, whatever its outcome: one committed
//! reservation, one hash and one committed outcome. An attempt that is not counted is evaluated on a decoy by the same code.

use super::Accounts;
use crate::account::{Account, AccountSecrets, OwnAccount, ReadOwnAccount};
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::{Digest, DigestPurpose};
use crate::email::EmailAddress;
use crate::entity::{DocumentSecret, EntityKey};
use crate::error::{Error, Refusal};
use crate::hash_slots::Requester;
use crate::id::{AccountId, OrganizationId};
use crate::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS, ThrottleCounter};
use crate::login::{
    AttemptOutcome, DECOY, FinishAttempt, NetworkIsKnown, OwnChange, ProofEffect, Reservation, ReserveAttempt,
    VerifiedFactors, VerifiedProof,
};
use crate::network::Network;
use crate::passcode::{Passcode, PasscodeProof};
use crate::password;
use crate::port::{Event, LoginRefusal, PasswordVerdict, SealError};
use crate::principal::{Principal, SessionPrincipal};
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
    /// Consecutive attempts in its bucket, including this one.
    attempts: u32,
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
    pub(super) account: Account,
    pub(super) secrets: AccountSecrets,
    attempt: Attempt,
    passcode: PasscodeProof,
    rehashed: Option<DocumentSecret>,
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
        let reserved_at = self.environment.now();
        let network_digest = self.digester.digest(DigestPurpose::Network, &[network.as_bytes()]);
        // Acquire a slot of the hash queue before the account is looked up, based only on the network. An overload then
        // looks the same for every address.
        let environment = &self.environment;
        let known = self.operations.run(environment, &Principal::Operator, NetworkIsKnown(network_digest)).await?;
        let permit = self.hasher.permit(Requester::Network { network: network_digest, known })?;
        let reservation = ReserveAttempt { address: email.clone(), network: network_digest };
        let reservation = self.operations.run(environment, &Principal::Operator, reservation).await?;
        let (reserved, uncounted) = match reservation {
            Reservation::Account(reserved) => (Some(*reserved), Uncounted::UNKNOWN),
            Reservation::Unknown => (None, Uncounted::UNKNOWN),
            Reservation::Throttled(organization, account) => {
                (None, Uncounted::of(LoginRefusal::Throttled, organization, account))
            }
            Reservation::Disabled(organization, account) => {
                (None, Uncounted::of(LoginRefusal::Closed, organization, account))
            }
        };
        let (account, secrets, attempts) = match reserved {
            Some(reserved) => (Some(reserved.account), reserved.secrets, reserved.attempts),
            None => (None, None, 0),
        };
        let attempt = Attempt { actor, network, network_digest, attempts, reserved_at };
        // Without secrets, verify a decoy: the same work, and always wrong.
        if secrets.is_some() {
            self.environment.emit(Event::PasswordEvaluated);
        }
        let stored = secrets.as_ref().map(|secrets| secrets.password.clone());
        let verdict = self.hasher.verify(permit, password, stored).await?;
        // Check the passcode whatever the password is, so that the duration does not disclose the result.
        let place = account.as_ref().map_or(DECOY, Account::place);
        let found = self.look_at(place.1, secrets.as_ref(), &Passcode::read(&passcode))?;
        let recovery_code = found.and_then(PasscodeProof::recovery_code);
        let Some(account) = account else {
            return Err(self.conclude_uncounted(uncounted, attempt, recovery_code).await?);
        };
        if matches!(verdict, PasswordVerdict::Damaged) {
            self.report_damage(EntityKey::TABLE, account.grant.account);
        }
        match (verdict, found, secrets) {
            (PasswordVerdict::Right { rehashed }, Some(passcode), Some(secrets)) => {
                Ok(Proven { account, secrets, attempt, passcode, rehashed })
            }
            (PasswordVerdict::Right { .. }, _, _) => {
                Err(self.conclude(account, attempt, VerifiedFactors::WrongPasscode).await)
            }
            (PasswordVerdict::Wrong | PasswordVerdict::Damaged, _, _) => {
                Err(self.conclude(account, attempt, VerifiedFactors::WrongPassword { recovery_code }).await)
            }
        }
    }

    /// Marks the factors as used and applies `effect`, in one transaction, for `principal`.
    pub(super) async fn complete(
        &self,
        proven: &Proven,
        principal: &Principal,
        effect: ProofEffect,
    ) -> Result<(), Error> {
        let Proven { account, attempt, passcode, rehashed, .. } = proven;
        let session = match &effect {
            ProofEffect::Session(session) => Some(session.id),
            ProofEffect::Own(_) => None,
        };
        // A verifier of the password that is replaced is not stored.
        let replaced = matches!(effect, ProofEffect::Own(OwnChange::Password(..)));
        let rehashed = rehashed.clone().filter(|_| !replaced);
        let proof = VerifiedFactors::Proof(Box::new(VerifiedProof { passcode: *passcode, rehashed, effect }));
        match self.try_conclude(Some(account.clone()), *attempt, principal, proof).await? {
            AttemptOutcome::Completed => {
                let (account, network) = (account.grant.account, attempt.network);
                if attempt.attempts > FREE_ATTEMPTS {
                    self.environment.emit(Event::LoginUnlocked { account, network });
                }
                self.environment.emit(Event::LoginSucceeded { account, session, network });
                Ok(())
            }
            refused => Err(self.conclusion(refused, account.grant.account, *attempt)),
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

    /// Returns which code of the account the passcode is, used or not. Without secrets, it is none that can be accepted.
    fn look_at(
        &self,
        account: AccountId,
        secrets: Option<&AccountSecrets>,
        passcode: &Passcode,
    ) -> Result<Option<PasscodeProof>, SealError> {
        let seed = secrets.map(|secrets| &secrets.seed);
        let found = match passcode {
            Passcode::TimeBased(digits) => {
                let step = self.passcodes.matching_step(seed, digits, self.environment.now());
                step.map(|step| step.map(PasscodeProof::Step))
            }
            Passcode::Recovery(digits) => {
                let code = self.passcodes.recovery_code(account, seed, digits);
                code.map(|code| Some(PasscodeProof::RecoveryCode(code)))
            }
            Passcode::Impossible => Ok(None),
        };
        found.inspect_err(|error| self.environment.report(error))
    }

    /// Finishes an attempt that was not counted, and returns its error.
    async fn conclude_uncounted(
        &self,
        uncounted: Uncounted,
        attempt: Attempt,
        recovery_code: Option<Digest>,
    ) -> Result<Error, Error> {
        let Uncounted { refusal, place } = uncounted;
        let presented = VerifiedFactors::WrongPassword { recovery_code };
        self.try_conclude(None, attempt, &Principal::Operator, presented).await?;
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
    async fn conclude(&self, account: Account, attempt: Attempt, presented: VerifiedFactors) -> Error {
        let id = account.grant.account;
        match self.try_conclude(Some(account), attempt, &Principal::Operator, presented).await {
            Ok(conclusion) => self.conclusion(conclusion, id, attempt),
            Err(error) => error,
        }
    }

    async fn try_conclude(
        &self,
        reserved: Option<Account>,
        Attempt { actor, network_digest: network, attempts, .. }: Attempt,
        principal: &Principal,
        presented: VerifiedFactors,
    ) -> Result<AttemptOutcome, Error> {
        let finish = FinishAttempt { reserved, attempts, presented, network, actor };
        self.operations.run(&self.environment, principal, finish).await
    }

    fn conclusion(&self, conclusion: AttemptOutcome, account: AccountId, attempt: Attempt) -> Error {
        let network = attempt.network;
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
        let class = ThrottleCounter { attempts: attempt.attempts, latest: Some(attempt.reserved_at) };
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
}
