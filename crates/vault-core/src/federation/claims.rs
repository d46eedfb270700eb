//! Claims of federation tokens.

use super::{FederationAudience, FederationIssuer, FederationSubject};
use crate::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

/// Claims of one federation token. Only the subject distinguishes organizations, so there are no further claims that a trust
/// could be bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationClaims {
    /// Issuer (`iss`).
    pub issuer: FederationIssuer,
    /// Subject (`sub`).
    pub subject: FederationSubject,
    /// Audience (`aud`).
    pub audience: FederationAudience,
    /// Current time, from which `iat`, `nbf` and `exp` follow.
    pub now: Timestamp,
    /// Random ID of the token (`jti`).
    pub id: Uuid,
}

impl FederationClaims {
    /// Seconds by which `iat` and `nbf` are in the past, because Google refuses a token whose `iat` is in the future.
    const BACKDATED_SECONDS: i64 = 30;
    /// Seconds from now until the token expires.
    pub const LIFETIME_SECONDS: i64 = 300;

    /// Returns the claims as the JSON text to sign.
    pub fn to_json(&self) -> String {
        let begin = self.now.plus_seconds(-Self::BACKDATED_SECONDS).as_seconds();
        json!({
            "iss": self.issuer.as_str(),
            "sub": self.subject.to_string(),
            "aud": self.audience.as_str(),
            "iat": begin,
            "nbf": begin,
            "exp": self.now.plus_seconds(Self::LIFETIME_SECONDS).as_seconds(),
            "jti": self.id.to_string(),
        })
        .to_string()
    }
}
