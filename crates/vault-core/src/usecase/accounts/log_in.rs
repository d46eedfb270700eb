//! Logins with e-mail address, password and passcode, which create a session and its token.

use super::{Accounts, OwnerProof};
use crate::audit::Actor;
use crate::email::EmailAddress;
use crate::error::Error;
use crate::id::SessionId;
use crate::login::ProofEffect;
use crate::network::Network;
use crate::port::LoginRefusal;
use crate::principal::Principal;
use crate::session::{AccessToken, NewSession, SessionClaims};
use crate::time::{Timestamp, Ttl};
use secrecy::SecretString;

/// Request for a login.
pub struct LogInRequest {
    /// Address, in any spelling.
    pub email: String,
    /// The password, exactly as received.
    pub password: SecretString,
    /// The passcode, exactly as received.
    pub passcode: SecretString,
    /// The requested lifetime in seconds.
    pub ttl: Option<i64>,
    /// Origin of the request.
    pub network: Network,
    /// Name of the client, in the form of [`client_name`](crate::session::client_name).
    pub client: Option<String>,
}

/// A successful login.
pub struct LoggedIn {
    /// The access token.
    pub token: AccessToken,
    /// Lifetime in seconds.
    pub expires_in: u32,
    /// Time of its expiry.
    pub expires_at: Timestamp,
}

impl Accounts {
    /// Logs in.
    ///
    /// # Errors
    /// - [`Refusal::InvalidLogin`](crate::Refusal::InvalidLogin): address, password or passcode is wrong. The error and
    ///   the work are the same in all cases.
    /// - [`Error::Invalid`]: the lifetime is out of bounds.
    pub async fn log_in(&self, request: LogInRequest) -> Result<LoggedIn, Error> {
        let LogInRequest { email, password, passcode, ttl, network, client } = request;
        let ttl = Ttl::parse(ttl, self.max_ttl)?;
        let Ok(email) = EmailAddress::parse(&email) else {
            return Err(self.refused(LoginRefusal::Impossible, None, network));
        };
        let proven = self.evaluate(&email, Actor::Unknown, OwnerProof { password, passcode, network }).await?;

        let now = self.environment.now();
        let issued_at = now.floor_to_second();
        let expires_at = issued_at.plus_seconds(ttl.as_seconds().into());
        let session = SessionId::from_uuid(self.environment.ids.random());
        let grant = &proven.account.grant;
        let claims = SessionClaims {
            instance: self.instance,
            session,
            account: grant.account,
            organization: grant.organization,
            role: grant.role,
            version: proven.account.sessions.since,
            issued_at,
            expires_at,
        };
        let network = network.to_string();
        let session = NewSession { id: session, created_at: now, expires_at, network, client };
        self.complete(&proven, &Principal::Operator, ProofEffect::Session(session)).await?;
        // Issue the token last: if refusals also created a token, their duration would disclose that the password is
        // correct.
        let token = self.tokens.issue(&claims)?;
        Ok(LoggedIn { token, expires_in: ttl.as_seconds(), expires_at })
    }
}
