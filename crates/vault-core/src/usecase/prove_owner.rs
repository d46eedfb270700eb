//! Prove that an account's owner is here: address, password and passcode. The one way for a login and for every
//! change of one's own account that asks for them again, so with the same counters, waits and work.

use super::{Ambient, AuditTally};
use crate::account::AccountState;
use crate::audit::{Actor, AuditAction, SealedAuditRecord, Subject};
use crate::digest::{Digest, DigestPurpose};
use crate::email::EmailAddress;
use crate::lockout::{CLOSING_ATTEMPTS, UNKNOWN_ADDRESS_BUCKETS};
use crate::network::Network;
use crate::organization::OrganizationState;
use crate::passcode::{Passcode, PasscodeProof};
use crate::password;
use crate::port::{
    CompleteProof, CompleteProofOutcome, Event, HashError, KeyedDigester, LoginGuard, LoginRefusal, OwnAccount,
    OwnAccountRepository, OwnChange, PasscodeVerifier, PasswordHasher, PasswordVerdict, ProofEffect, RefuseAttempt,
    RefusedAccount, Reservation, ReserveAttempt, ReservedAccount, SealError, StoreError,
};
use crate::principal::{Denial, SessionPrincipal};
use crate::sealed::SealedPassword;
use crate::seats::Requester;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;

/// What the owner brings to prove it.
pub struct OwnerProof {
    /// The password, exactly as received.
    pub password: SecretString,
    /// The passcode, exactly as received.
    pub passcode: SecretString,
    /// Where it came from.
    pub network: Network,
}

/// Why a proof was refused or not judged.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// Address, password or passcode. Which of them is never told.
    #[error("the login is not valid")]
    Invalid,
    /// The session that asks may no longer act. Never of a login.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// Hashing is overloaded or failed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// The ports of proving.
#[derive(Clone)]
pub struct ProveOwner {
    /// Surroundings.
    pub ambient: Ambient,
    /// Counts attempts turned away.
    pub tally: Arc<AuditTally>,
    /// The store's side.
    pub guard: Arc<dyn LoginGuard>,
    /// Password verification.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Passcode verification.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests.
    pub digester: Arc<dyn KeyedDigester>,
}

/// A proof that holds, until it is completed.
pub(super) struct Proven {
    pub(super) reserved: ReservedAccount,
    proof: PasscodeProof,
    rehashed: Option<SealedPassword>,
    network: Digest,
    actor: Actor,
}

impl ProveOwner {
    /// Whose account the principal's is.
    pub(super) async fn own_account(
        &self,
        accounts: &dyn OwnAccountRepository,
        principal: &SessionPrincipal,
    ) -> Result<OwnAccount, ProofError> {
        let found = accounts.own_account(principal.clone(), self.ambient.now()).await;
        found.map_err(|error| self.ambient.witness(error))?.map_err(ProofError::Principal)
    }

    /// Judges a proof for the account with the address `email`; `actor` is who brings it.
    pub(super) async fn judge(
        &self,
        email: &EmailAddress,
        actor: Actor,
        brought: OwnerProof,
    ) -> Result<Proven, ProofError> {
        if brought.password.expose_secret().len() > password::MAX_BYTES {
            return Err(self.refused(LoginRefusal::Impossible));
        }

        // Before the account is looked up, so that an overload looks the same for every address.
        let network = self.digester.digest(DigestPurpose::Network, &[brought.network.as_bytes()]);
        let permit = self.hasher.permit(Requester::Network { network, known: false })?;
        let now = self.ambient.now();
        let bucket = self.bucket(email);
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        let reserved = match self.guard.reserve_attempt(ReserveAttempt { address, bucket, network, now }).await? {
            Reservation::Account(reserved) => Some(*reserved),
            Reservation::Unknown => None,
            Reservation::TurnedAway { account } => {
                let (organization, subject) = match account {
                    Some((organization, account)) => (Some(organization), Subject::Account(account)),
                    None => (None, Subject::AddressBucket(bucket)),
                };
                self.tally.count(now, organization, actor, AuditAction::LoginTurnedAway, subject);
                return Err(self.refused(LoginRefusal::TurnedAway));
            }
        };

        self.ambient.emit(Event::PasswordEvaluated);
        let stored = reserved.as_ref().map(|reserved| reserved.password.clone());
        let account = reserved.as_ref().map(|reserved| reserved.grant.account);
        let verdict = self.hasher.verify(permit, account, brought.password, stored).await?;
        let Some(reserved) = reserved else {
            self.guard.refuse_attempt(RefuseAttempt::Unknown { bucket, now: self.ambient.now() }).await?;
            let subject = Subject::AddressBucket(bucket);
            self.tally.count(now, None, actor, AuditAction::LoginTurnedAway, subject);
            return Err(self.refused(LoginRefusal::UnknownAddress));
        };
        match self.weigh(&reserved, verdict, &brought.passcode)? {
            Ok((proof, rehashed)) => Ok(Proven { reserved, proof, rehashed, network, actor }),
            Err(refusal) => Err(self.refuse(&reserved, actor, refusal).await?),
        }
    }

    /// Which proof the attempt brought, or why it fails.
    fn weigh(
        &self,
        reserved: &ReservedAccount,
        verdict: PasswordVerdict,
        passcode: &SecretString,
    ) -> Result<Result<(PasscodeProof, Option<SealedPassword>), LoginRefusal>, SealError> {
        let account = reserved.grant.account;
        let rehashed = match verdict {
            PasswordVerdict::Right { rehashed } => rehashed,
            PasswordVerdict::Wrong => return Ok(Err(LoginRefusal::WrongPassword)),
            PasswordVerdict::Damaged => {
                self.ambient.emit(Event::IntegrityFailure { table: "accounts", id: account.to_string() });
                return Ok(Err(LoginRefusal::WrongPassword));
            }
        };
        if reserved.grant.digest(&*self.digester) != reserved.grant_digest {
            self.ambient.emit(Event::IntegrityFailure { table: "accounts", id: account.to_string() });
            return Ok(Err(LoginRefusal::Closed));
        }
        if reserved.grant.state != AccountState::Active || reserved.organization_state != OrganizationState::Active {
            return Ok(Err(LoginRefusal::Closed));
        }
        let proof = match Passcode::read(passcode) {
            Passcode::TimeBased(digits) => self
                .passcodes
                .matching_step(account, &reserved.seed, &digits, self.ambient.now())?
                .map(PasscodeProof::Step),
            Passcode::Recovery(digits) => {
                let parts: [&[u8]; 2] = [account.as_bytes(), digits.expose().as_bytes()];
                Some(PasscodeProof::RecoveryCode(self.digester.digest(DigestPurpose::RecoveryCode, &parts)))
            }
            Passcode::Impossible => None,
        };
        Ok(proof.map(|proof| (proof, rehashed)).ok_or(LoginRefusal::WrongPasscode))
    }

    /// Spends the proof for `effect`, both or neither; `audit` is the record of the effect.
    pub(super) async fn complete(
        &self,
        proven: Proven,
        effect: ProofEffect,
        audit: SealedAuditRecord,
    ) -> Result<(), ProofError> {
        let Proven { reserved, proof, rehashed, network, actor } = proven;
        let replaced = matches!(effect, ProofEffect::Own { change: OwnChange::Password(_), .. });
        let command = CompleteProof {
            grant: reserved.grant.clone(),
            password_version: reserved.password_version,
            seed: reserved.seed.id,
            proof,
            network,
            rehashed: rehashed.filter(|_| !replaced),
            effect,
            now: self.ambient.now(),
            audit,
        };
        match self.guard.complete_proof(command).await? {
            CompleteProofOutcome::Completed => Ok(()),
            CompleteProofOutcome::PasscodeSpent => {
                Err(self.refuse(&reserved, actor, LoginRefusal::WrongPasscode).await?)
            }
            CompleteProofOutcome::Overtaken => Err(self.refuse(&reserved, actor, LoginRefusal::Overtaken).await?),
            CompleteProofOutcome::Refused(refusal) => {
                self.refuse(&reserved, actor, LoginRefusal::Overtaken).await?;
                Err(ProofError::Principal(refusal))
            }
        }
    }

    /// Carries a change of the principal's own account out, once the proof holds.
    pub(super) async fn complete_own(
        &self,
        proven: Proven,
        principal: &SessionPrincipal,
        change: OwnChange,
        action: AuditAction,
    ) -> Result<(), ProofError> {
        let (actor, subject) = (Actor::from(principal), Subject::Account(principal.account));
        let audit = self.ambient.record(self.ambient.now(), Some(principal.organization), actor, action, subject);
        self.complete(proven, ProofEffect::Own { principal: principal.clone(), change }, audit).await
    }

    /// Records a refusal of a known account, and gives the error that tells of it.
    async fn refuse(
        &self,
        reserved: &ReservedAccount,
        actor: Actor,
        refusal: LoginRefusal,
    ) -> Result<ProofError, StoreError> {
        let wrong_passcode = refusal == LoginRefusal::WrongPasscode;
        let (organization, account) = (reserved.grant.organization, reserved.grant.account);
        let now = self.ambient.now();
        let record = |action| self.ambient.record(now, Some(organization), actor, action, Subject::Account(account));
        let command = RefusedAccount {
            organization,
            account,
            now,
            audit: record(if wrong_passcode { AuditAction::LoginPasscodeRefused } else { AuditAction::LoginRefused }),
            class_closed: (reserved.attempts == CLOSING_ATTEMPTS).then(|| record(AuditAction::LoginClassClosed)),
            wrong_passcode: wrong_passcode.then(|| record(AuditAction::LoginPasscodeDisabled)),
        };
        self.guard.refuse_attempt(RefuseAttempt::Account(Box::new(command))).await?;
        Ok(self.refused(refusal))
    }

    /// Counts a refusal, and gives the error that tells of it.
    pub(super) fn refused(&self, refusal: LoginRefusal) -> ProofError {
        self.ambient.emit(Event::LoginRefused(refusal));
        ProofError::Invalid
    }

    fn bucket(&self, email: &EmailAddress) -> u16 {
        let digest = self.digester.digest(DigestPurpose::AttemptBucket, &[email.as_str().as_bytes()]);
        let [high, low, ..] = *digest.as_bytes();
        u16::from_be_bytes([high, low]) % UNKNOWN_ADDRESS_BUCKETS
    }
}
