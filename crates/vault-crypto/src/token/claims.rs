//! Claims of an access token: all are required, others are rejected, and each has one form.

use super::instant;
use serde::Deserialize;
use vault_core::id::InstanceId;
use vault_core::port::TokenRefusal;
use vault_core::role::Role;
use vault_core::session::SessionClaims;
use vault_core::time::{Timestamp, Ttl};

/// Maximum time by which `nbf` and `iat` may be ahead of the clock, in seconds. `exp` has no leeway.
const LEEWAY: i64 = 5;

/// Authentication methods of the user (RFC 8176): a password and a one-time code.
const METHODS: [&str; 2] = ["pwd", "otp"];

/// Issuer and audience of tokens.
pub(super) struct Audience {
    instance: InstanceId,
    issuer: String,
    audience: String,
    epoch: u64,
}

/// Payload of a token. Text with escapes is rejected, because issued tokens have none. The derived code rejects
/// duplicate members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    org: &'a str,
    role: &'a str,
    ver: i64,
    jti: &'a str,
    iat: &'a str,
    nbf: &'a str,
    exp: &'a str,
    epoch: u64,
    #[serde(borrow)]
    amr: [&'a str; 2],
}

impl Audience {
    pub(super) fn new(instance: InstanceId, epoch: u64) -> Self {
        Self { instance, issuer: format!("orgvault:{instance}"), audience: format!("orgvault:{instance}:vault"), epoch }
    }

    /// Returns the payload with these claims, or `None` if they belong to another instance or are outside the years 0
    /// to 9999.
    pub(super) fn write(&self, claims: &SessionClaims) -> Option<String> {
        if claims.instance != self.instance {
            return None;
        }
        let [password, code] = METHODS;
        let (issuer, audience, epoch) = (&self.issuer, &self.audience, self.epoch);
        let SessionClaims { account, organization, role, version, session, .. } = claims;
        let issued = instant::write(claims.issued_at)?;
        let expires = instant::write(claims.expires_at)?;
        // No value contains a character that JSON would escape.
        Some(format!(
            r#"{{"iss":"{issuer}","aud":"{audience}","sub":"{account}","org":"{organization}","role":"{role}","ver":{version},"jti":"{session}","iat":"{issued}","nbf":"{issued}","exp":"{expires}","epoch":{epoch},"amr":["{password}","{code}"]}}"#
        ))
    }

    /// Returns the claims of an authentic payload if it is for this instance and valid at `now`.
    pub(super) fn read(&self, payload: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal> {
        let (claims, not_before) = self.parse(payload).ok_or(TokenRefusal::Claims)?;
        let latest = now.plus_seconds(LEEWAY);
        if claims.issued_at > latest || not_before > latest {
            return Err(TokenRefusal::NotYetValid);
        }
        if now >= claims.expires_at { Err(TokenRefusal::Expired) } else { Ok(claims) }
    }

    fn parse(&self, payload: &str) -> Option<(SessionClaims, Timestamp)> {
        // The derived code would also accept an array of the values.
        if !payload.starts_with('{') {
            return None;
        }
        let said: Payload<'_> = serde_json::from_str(payload).ok()?;
        let for_us = said.iss == self.issuer && said.aud == self.audience && said.epoch == self.epoch;
        if !for_us || said.amr != METHODS {
            return None;
        }
        let claims = SessionClaims {
            instance: self.instance,
            session: said.jti.parse().ok()?,
            account: said.sub.parse().ok()?,
            organization: said.org.parse().ok()?,
            role: Role::parse(said.role)?,
            version: said.ver,
            issued_at: instant::read(said.iat)?,
            expires_at: instant::read(said.exp)?,
        };
        // No configuration allows a longer lifetime, so this instance did not issue such a token.
        let life = claims.expires_at.millis_since(claims.issued_at);
        let plausible = 0 < life && life <= i64::from(Ttl::MAX) * 1000;
        plausible.then_some((claims, instant::read(said.nbf)?))
    }
}
