//! Log in: e-mail, password, passcode and a wished lifetime for a session and its token.

use super::prove_owner::{OwnerProof, ProofError, ProveOwner};
use crate::audit::{Actor, AuditAction, Subject};
use crate::email::EmailAddress;
use crate::field::FieldError;
use crate::id::{InstanceId, SessionId};
use crate::network::Network;
use crate::port::{Event, LoginRefusal, ProofEffect, SealError, TokenIssuer};
use crate::session::{AccessToken, NewSession, SessionClaims};
use crate::time::{Timestamp, Ttl};
use secrecy::SecretString;
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
    /// The wished lifetime is out of bounds.
    #[error(transparent)]
    Ttl(#[from] FieldError),
    /// The proof was refused or could not be judged.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// No token could be issued.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// The ports of [`LogIn`].
pub struct LogIn {
    /// This deployment; stands in every token.
    pub instance: InstanceId,
    /// The longest lifetime that may be wished for, in seconds.
    pub max_ttl: u32,
    /// Judges the owner's proof.
    pub owner: ProveOwner,
    /// Tokens.
    pub tokens: Arc<dyn TokenIssuer>,
}

impl LogIn {
    /// Carries a login out.
    ///
    /// # Errors
    /// See [`LogInError`]. Everything wrong with address, password or passcode is the one
    /// [`ProofError::Invalid`], after the same work.
    pub async fn run(&self, request: LogInRequest) -> Result<LoggedIn, LogInError> {
        let ttl = Ttl::parse(request.ttl, self.max_ttl)?;
        let Ok(email) = EmailAddress::parse(&request.email) else {
            return Err(self.owner.refused(LoginRefusal::Impossible).into());
        };
        let network = request.network.to_string();
        let brought = OwnerProof { password: request.password, passcode: request.passcode, network: request.network };
        let proven = self.owner.judge(&email, Actor::Unknown, brought).await?;

        let ambient = &self.owner.ambient;
        let now = ambient.now();
        let issued_at = now.floor_to_second();
        let expires_at = issued_at.plus_seconds(ttl.as_seconds().into());
        let session = SessionId::from_uuid(ambient.ids.random());
        let grant = &proven.reserved.grant;
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
        let audit = ambient.record(now, Some(grant.organization), actor, AuditAction::LoginSucceeded, subject);
        let session = NewSession { id: session, created_at: now, expires_at, network };
        self.owner.complete(proven, ProofEffect::Session(session), audit).await?;
        ambient.emit(Event::LoginSucceeded);
        Ok(LoggedIn { token, expires_in: ttl.as_seconds(), expires_at })
    }
}
