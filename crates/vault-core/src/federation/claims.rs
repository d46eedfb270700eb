//! Claims of federation tokens.

use super::{FederationAudience, FederationIssuer, FederationSubject};
use crate::id::{ActivationId, IntegrationId};
use crate::namespace::Namespace;
use crate::time::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Claims of one federation token.
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
    /// Further claims. `None` for a trust check.
    pub activation: Option<ActivationClaims>,
}

/// Claims for the provider's logs and attribute mappings. They grant nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivationClaims {
    /// Namespace of the credential.
    pub namespace: Namespace,
    /// Integration and activation. `None` for a check of a saved credential.
    pub caller: Option<(IntegrationId, ActivationId)>,
    /// Tags of an AWS session. Empty unless the operator has enabled session tags. Omitted for other providers.
    pub session_tags: Vec<(&'static str, String)>,
}

impl FederationClaims {
    /// Seconds by which `iat` and `nbf` are in the past, because Google refuses a token whose `iat` is in the future.
    const BACKDATED_SECONDS: i64 = 30;
    /// Seconds from now until the token expires.
    pub const LIFETIME_SECONDS: i64 = 300;
    /// Claim from which AWS reads session tags.
    const AWS_TAGS: &'static str = "https://aws.amazon.com/tags";

    /// Returns the claims as the JSON text to sign.
    pub fn to_json(&self) -> String {
        let mut claims = Map::new();
        let mut set = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        let begin = self.now.plus_seconds(-Self::BACKDATED_SECONDS).as_seconds();
        set("iss", self.issuer.as_str().into());
        set("sub", self.subject.to_string().into());
        set("aud", self.audience.as_str().into());
        set("iat", begin.into());
        set("nbf", begin.into());
        set("exp", self.now.plus_seconds(Self::LIFETIME_SECONDS).as_seconds().into());
        set("jti", self.id.to_string().into());
        if let Some(ActivationClaims { namespace, caller, session_tags }) = &self.activation {
            set("namespace", namespace.as_str().into());
            if let Some((integration, activation)) = caller {
                set("integration", integration.to_string().into());
                set("activation", activation.to_string().into());
            }
            if self.audience.is_aws() && !session_tags.is_empty() {
                let tags: Map<String, Value> =
                    session_tags.iter().map(|(name, value)| ((*name).to_owned(), json!([value]))).collect();
                set(Self::AWS_TAGS, json!({"principal_tags": tags, "transitive_tag_keys": []}));
            }
        }
        Value::Object(claims).to_string()
    }
}
