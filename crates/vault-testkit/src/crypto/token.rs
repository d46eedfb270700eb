//! Tokens without any security.

use super::digest::digest;
use secrecy::SecretString;
use std::str::FromStr;
use vault_core::id::InstanceId;
use vault_core::port::{SealError, TokenIssuer, TokenRefusal};
use vault_core::role::Role;
use vault_core::session::{AccessToken, SessionClaims};
use vault_core::time::Timestamp;

const HEADER: &str = "fake";

/// Tokens that contain their claims as text, with a checksum that detects accidents but not forgery.
#[derive(Clone, Copy, Debug)]
pub struct FakeTokens {
    instance: InstanceId,
}

impl FakeTokens {
    /// Creates the tokens of this deployment.
    pub const fn new(instance: InstanceId) -> Self {
        Self { instance }
    }
}

impl TokenIssuer for FakeTokens {
    fn issue(&self, claims: &SessionClaims) -> Result<AccessToken, SealError> {
        let SessionClaims { instance, session, account, organization, role, version, issued_at, expires_at } = claims;
        let (issued_at, expires_at) = (issued_at.as_millis(), expires_at.as_millis());
        let body =
            format!("{HEADER}.{instance}.{session}.{account}.{organization}.{role}.{version}.{issued_at}.{expires_at}");
        let sum = check_sum(&body);
        Ok(AccessToken(SecretString::from(format!("{body}.{sum}"))))
    }

    fn verify(&self, token: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal> {
        let (body, sum) = token.rsplit_once('.').ok_or(TokenRefusal::Malformed)?;
        let parts: Vec<&str> = body.split('.').collect();
        let [HEADER, instance, session, account, organization, role, version, issued_at, expires_at] = parts[..] else {
            return Err(TokenRefusal::Malformed);
        };
        if sum != check_sum(body) {
            return Err(TokenRefusal::NotAuthentic);
        }
        let claims = SessionClaims {
            instance: read(instance)?,
            session: read(session)?,
            account: read(account)?,
            organization: read(organization)?,
            role: Role::parse(role).ok_or(TokenRefusal::Claims)?,
            version: read(version)?,
            issued_at: Timestamp::from_millis(read(issued_at)?),
            expires_at: Timestamp::from_millis(read(expires_at)?),
        };
        if claims.instance != self.instance {
            return Err(TokenRefusal::Claims);
        }
        if claims.issued_at > now {
            return Err(TokenRefusal::NotYetValid);
        }
        if now < claims.expires_at { Ok(claims) } else { Err(TokenRefusal::Expired) }
    }
}

fn check_sum(body: &str) -> String {
    let digest = digest(0, "token", &[body.as_bytes()]);
    digest.as_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read<T: FromStr>(text: &str) -> Result<T, TokenRefusal> {
    text.parse().map_err(|_| TokenRefusal::Claims)
}
