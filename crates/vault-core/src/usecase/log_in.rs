//! Log in: e-mail, password, passcode and a wished lifetime for a session and its token.

use super::{Ambient, AuditTally};
use crate::account::AccountState;
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::{Digest, DigestPurpose};
use crate::email::EmailAddress;
use crate::field::FieldError;
use crate::id::{InstanceId, SessionId};
use crate::lockout::UNKNOWN_ADDRESS_BUCKETS;
use crate::network::Network;
use crate::organization::OrganizationState;
use crate::passcode::{Passcode, PasscodeProof};
use crate::password;
use crate::port::{
    CompleteLogin, CompleteLoginOutcome, Event, HashError, KeyedDigester, LoginGuard, LoginRefusal, PasscodeVerifier,
    PasswordHasher, PasswordVerdict, RefuseAttempt, Reservation, ReserveAttempt, ReservedAccount, SealError,
    StoreError, TokenIssuer,
};
use crate::sealed::SealedPassword;
use crate::session::{AccessToken, NewSession, SessionClaims};
use crate::time::{Timestamp, Ttl};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;

/// A login as asked for.
pub struct LogInRequest {
    /// The address, in any spelling.
    pub email: String,
    /// The password, exactly as received.
    pub password: SecretString,
    /// The passcode, exactly as received.
    pub passcode: SecretString,
    /// The wished lifetime in seconds.
    pub ttl: Option<i64>,
    /// Where it came from.
    pub network: Network,
}

/// A login that succeeded.
pub struct LoggedIn {
    /// The access token.
    pub token: AccessToken,
    /// Its lifetime, in seconds.
    pub expires_in: u32,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// Why nobody was logged in.
#[derive(Debug, thiserror::Error)]
pub enum LogInError {
    /// Address, password or passcode. Which of them is never told.
    #[error("the login is not valid")]
    Invalid,
    /// The wished lifetime is out of bounds.
    #[error(transparent)]
    Ttl(#[from] FieldError),
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

/// The ports of [`LogIn`].
pub struct LogIn {
    /// This deployment; stands in every token.
    pub instance: InstanceId,
    /// The longest lifetime that may be wished for, in seconds.
    pub max_ttl: u32,
    /// Surroundings.
    pub ambient: Ambient,
    /// Counts logins turned away.
    pub tally: Arc<AuditTally>,
    /// The store's side.
    pub guard: Arc<dyn LoginGuard>,
    /// Password verification.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Passcode verification.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Look-up digests.
    pub digester: Arc<dyn KeyedDigester>,
    /// Tokens.
    pub tokens: Arc<dyn TokenIssuer>,
}

impl LogIn {
    /// Carries a login out.
    ///
    /// # Errors
    /// See [`LogInError`]. Everything wrong with address, password or passcode is the one
    /// [`LogInError::Invalid`], after the same work.
    pub async fn run(&self, request: LogInRequest) -> Result<LoggedIn, LogInError> {
        let ttl = Ttl::parse(request.ttl, self.max_ttl)?;
        let Ok(email) = EmailAddress::parse(&request.email) else {
            return Err(self.refused(LoginRefusal::Impossible));
        };
        if request.password.expose_secret().len() > password::MAX_BYTES {
            return Err(self.refused(LoginRefusal::Impossible));
        }

        // Before the account is looked up, so that an overload looks the same for every address.
        let permit = self.hasher.permit()?;
        let now = self.ambient.now();
        let network = self.digester.digest(DigestPurpose::Network, &[request.network.as_bytes()]);
        let bucket = self.bucket(&email);
        let address = self.digester.digest(DigestPurpose::Address, &[email.as_str().as_bytes()]);
        let reserved = match self.guard.reserve_attempt(ReserveAttempt { address, bucket, network, now }).await? {
            Reservation::Account(reserved) => Some(*reserved),
            Reservation::Unknown => None,
            Reservation::TurnedAway { account } => {
                let (organization, subject) = match account {
                    Some((organization, account)) => (Some(organization), Subject::Account(account)),
                    None => (None, Subject::AddressBucket(bucket)),
                };
                self.tally.count(now, organization, Actor::Unknown, AuditAction::LoginTurnedAway, subject);
                return Err(self.refused(LoginRefusal::TurnedAway));
            }
        };

        self.ambient.emit(Event::PasswordEvaluated);
        let stored = reserved.as_ref().map(|reserved| reserved.password.clone());
        let account = reserved.as_ref().map(|reserved| reserved.grant.account);
        let verdict = self.hasher.verify(permit, account, request.password, stored).await?;
        let Some(reserved) = reserved else {
            let subject = Subject::AddressBucket(bucket);
            self.tally.count(now, None, Actor::Unknown, AuditAction::LoginTurnedAway, subject);
            return Err(self.refused(LoginRefusal::UnknownAddress));
        };
        match self.judge(&reserved, verdict, &request.passcode)? {
            Ok((proof, rehashed)) => {
                self.complete(reserved, proof, rehashed, Attempt { ttl, network: request.network, digest: network })
                    .await
            }
            Err(refusal) => self.refuse(&reserved, refusal).await,
        }
    }

    /// Which proof the attempt brought, or why it fails.
    fn judge(
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

    async fn complete(
        &self,
        reserved: ReservedAccount,
        proof: PasscodeProof,
        rehashed: Option<SealedPassword>,
        attempt: Attempt,
    ) -> Result<LoggedIn, LogInError> {
        let now = self.ambient.now();
        let issued_at = now.floor_to_second();
        let expires_at = issued_at.plus_seconds(attempt.ttl.as_seconds().into());
        let session = SessionId::from_uuid(self.ambient.ids.random());
        let grant = &reserved.grant;
        let token = self.tokens.issue(&SessionClaims {
            instance: self.instance,
            session,
            account: grant.account,
            organization: grant.organization,
            role: grant.role,
            issued_at,
            expires_at,
        })?;
        let actor = Actor::Account(grant.account, session);
        let subject = Subject::Session(session);
        let command = CompleteLogin {
            grant: grant.clone(),
            password_version: reserved.password_version,
            seed: reserved.seed.id,
            proof,
            network: attempt.digest,
            rehashed,
            session: NewSession { id: session, created_at: now, expires_at, network: attempt.network.to_string() },
            now,
            audit: self.ambient.record(now, Some(grant.organization), actor, AuditAction::LoginSucceeded, subject),
        };
        match self.guard.complete_login(command).await? {
            CompleteLoginOutcome::Completed => {
                self.ambient.emit(Event::LoginSucceeded);
                Ok(LoggedIn { token, expires_in: attempt.ttl.as_seconds(), expires_at })
            }
            CompleteLoginOutcome::PasscodeSpent => self.refuse(&reserved, LoginRefusal::WrongPasscode).await,
            CompleteLoginOutcome::Overtaken => self.refuse(&reserved, LoginRefusal::Overtaken).await,
        }
    }

    /// Records a refusal of a known account.
    async fn refuse<T>(&self, reserved: &ReservedAccount, refusal: LoginRefusal) -> Result<T, LogInError> {
        let wrong_passcode = refusal == LoginRefusal::WrongPasscode;
        let action = if wrong_passcode { AuditAction::LoginPasscodeRefused } else { AuditAction::LoginRefused };
        let (organization, account) = (reserved.grant.organization, reserved.grant.account);
        let audit = self.ambient.record(
            self.ambient.now(),
            Some(organization),
            Actor::Unknown,
            action,
            Subject::Account(account),
        );
        self.guard.refuse_attempt(RefuseAttempt { organization, account, wrong_passcode, audit }).await?;
        Err(self.refused(refusal))
    }

    fn refused(&self, refusal: LoginRefusal) -> LogInError {
        self.ambient.emit(Event::LoginRefused(refusal));
        LogInError::Invalid
    }

    fn bucket(&self, email: &EmailAddress) -> u16 {
        let digest = self.digester.digest(DigestPurpose::AttemptBucket, &[email.as_str().as_bytes()]);
        let [high, low, ..] = *digest.as_bytes();
        u16::from_be_bytes([high, low]) % UNKNOWN_ADDRESS_BUCKETS
    }
}

struct Attempt {
    ttl: Ttl,
    network: Network,
    digest: Digest,
}
