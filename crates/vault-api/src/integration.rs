//! `…/integrations`: integrations, managed by an organization's admins.

use crate::WireSecret;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A new integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateIntegrationRequest {
    /// Its name, unique within the organization.
    pub name: String,
    /// What it may activate: names of namespaces, or a prefix and `/*` for all below it.
    pub namespaces: Vec<String>,
    /// When it expires, RFC 3339; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// `false`: it gets no token, and only workloads that it trusts act for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<bool>,
    /// The workloads that may act for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusts: Option<Vec<TrustRequest>>,
    /// Document set that manages the object, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// Which workloads of an issuer may act for an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustRequest {
    /// The name of the issuer, as `GET {base_url}/issuers` lists it.
    pub issuer: Value,
    /// What each claim of its tokens must be, by JSON pointer: exactly, or the beginning before a last `*`. `/sub` is required.
    pub claims: Value,
    /// For how long a token may be valid, in seconds; 3600 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<Value>,
}

/// A trust of an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustItem {
    /// ID.
    pub id: String,
    /// The name of the issuer.
    pub issuer: String,
    /// What each claim of its tokens must be, by JSON pointer.
    pub claims: BTreeMap<String, Value>,
    /// For how long a token may be valid, in seconds.
    pub max_lifetime: i64,
}

/// An issuer that integrations may trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuerItem {
    /// Its name.
    pub name: String,
    /// What its tokens have as `iss`.
    pub issuer: String,
    /// Claims that every trust must say exactly, as JSON pointers.
    pub required_claims: Vec<String>,
    /// When its keys were fetched, RFC 3339 in UTC.
    pub fetched_at: String,
    /// Why its keys could not be fetched since; absent: they could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A change of an integration; absent members stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeIntegrationRequest {
    /// `active` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The new patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// When it expires, RFC 3339. The server also accepts `null`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The set of documents that describes it. The server also accepts `null`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// A rotation of an integration's token. The body is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateIntegrationRequest {
    /// How long the current token stays valid, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<i64>,
}

/// An integration and its new token.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuedIntegration {
    /// ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Namespaces that it may activate.
    pub namespaces: Vec<String>,
    /// Its token, shown once; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<WireSecret>,
    /// The workloads that may act for it; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<TrustItem>,
    /// When it expires, RFC 3339 in UTC, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// An integration as lists show it: never a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntegrationItem {
    /// ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Namespaces that it may activate.
    pub namespaces: Vec<String>,
    /// Its state: `active`, `disabled` or `expired`.
    pub state: String,
    /// When it was created, RFC 3339 in UTC.
    pub created_at: String,
    /// When it expires, RFC 3339 in UTC, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When the current token was last used, RFC 3339 in UTC, to the minute; absent if unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// When the previous token expires, RFC 3339 in UTC, while it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_token_until: Option<String>,
    /// The workloads that may act for it; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<TrustItem>,
    /// Document set that manages the object, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// A namespace of the organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceItem {
    /// Its name.
    pub namespace: String,
    /// How many credentials it has; counted to 1,000.
    pub credentials: i64,
    /// Whether it is frozen.
    pub frozen: bool,
}

/// A namespace to freeze or to thaw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamespaceRequest {
    /// Its name, compared exactly.
    pub namespace: String,
}

/// The credentials and integrations that freezing a namespace affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenNamespace {
    /// How many credentials the namespace has; counted to 1,000.
    pub credentials: i64,
    /// How many integrations may activate it.
    pub integrations: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_is_left_out() {
        let request: Option<RotateIntegrationRequest> = serde_json::from_str("{}").ok();
        assert_eq!(request, Some(RotateIntegrationRequest::default()));
        assert_eq!(serde_json::to_string(&RotateIntegrationRequest::default()).unwrap_or_default(), "{}");
        let text = r#"{"name":"nightly","namespaces":["imports/*"]}"#;
        let request: Option<CreateIntegrationRequest> = serde_json::from_str(text).ok();
        assert_eq!(request.and_then(|request| serde_json::to_string(&request).ok()).as_deref(), Some(text));
        assert!(serde_json::from_str::<CreateIntegrationRequest>(r#"{"name":"a","namespaces":[],"x":1}"#).is_err());
    }

    #[test]
    fn a_token_crosses_the_wire_and_is_not_printed() {
        let text = r#"{"id":"i","name":"n","namespaces":["a"],"token":"ovi_secret"}"#;
        let issued: Option<IssuedIntegration> = serde_json::from_str(text).ok();
        assert!(!format!("{issued:?}").contains("secret"));
        assert_eq!(issued.and_then(|issued| serde_json::to_string(&issued).ok()).as_deref(), Some(text));
    }
}
