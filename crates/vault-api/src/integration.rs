//! Requests and responses of `…/integrations`, which admins of an organization manage.

use crate::WireSecret;
use crate::member::{present, whole};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A new integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, bound(deserialize = "T: Deserialize<'de>"))]
pub struct CreateIntegrationRequest<T = TrustRequest> {
    /// Name, unique within the organization.
    pub name: String,
    /// Namespaces that it may activate: names, or a prefix and `/*` for all below it.
    pub namespaces: Vec<String>,
    /// Expiry in RFC 3339. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub expires_at: Option<String>,
    /// `false` creates no token, so that only trusted workloads can use it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub token: Option<bool>,
    /// Workloads that may use it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub trusts: Option<Vec<T>>,
    /// Document set that manages the object, if any.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub managed_by: Option<String>,
}

/// Workloads of an issuer that may use an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustRequest {
    /// Name of the issuer, from `GET {base_url}/issuers`.
    pub issuer: Value,
    /// Required claims of its tokens, by JSON pointer: exact values, or prefixes before a final `*`. `/sub` is
    /// required.
    pub claims: Value,
    /// Maximum lifetime of a token in seconds. Default: 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<Value>,
}

/// A trust of an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustItem {
    /// ID of the trust.
    pub id: String,
    /// Name of the issuer.
    pub issuer: String,
    /// Required claims of its tokens, by JSON pointer.
    pub claims: BTreeMap<String, Value>,
    /// Maximum lifetime of a token in seconds.
    pub max_lifetime: i64,
}

/// An issuer that integrations may trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuerItem {
    /// Name of the issuer.
    pub name: String,
    /// Value of `iss` in its tokens.
    pub issuer: String,
    /// Claims that every trust must specify exactly, as JSON pointers.
    pub required_claims: Vec<String>,
    /// Time at which its keys were fetched, RFC 3339 in UTC.
    pub fetched_at: String,
    /// Reason why its keys could not be fetched since. Absent if they could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A change of an integration. Absent fields are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeIntegrationRequest {
    /// New state: `active` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<String>,
    /// New patterns.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub namespaces: Option<Vec<String>>,
    /// New expiry in RFC 3339. The server also accepts `null` for never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub expires_at: Option<Option<String>>,
    /// Document set that manages it. The server also accepts `null` for none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub managed_by: Option<Option<String>>,
}

/// A rotation of an integration's token. The body is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateIntegrationRequest {
    /// Time for which the current token stays valid, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub overlap: Option<i64>,
}

/// An integration with its new token.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuedIntegration {
    /// ID of the integration.
    pub id: String,
    /// Name.
    pub name: String,
    /// Namespaces that it may activate.
    pub namespaces: Vec<String>,
    /// Token, shown only once. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<WireSecret>,
    /// Workloads that may use it. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<TrustItem>,
    /// Expiry, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// An integration in a list, without its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntegrationItem {
    /// ID of the integration.
    pub id: String,
    /// Name.
    pub name: String,
    /// Namespaces that it may activate.
    pub namespaces: Vec<String>,
    /// State: `active`, `disabled` or `expired`.
    pub state: String,
    /// Time of creation, RFC 3339 in UTC.
    pub created_at: String,
    /// Expiry, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of the current token's last use, truncated to the minute, RFC 3339 in UTC. Absent if unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Expiry of the previous token, RFC 3339 in UTC, while it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_token_until: Option<String>,
    /// Workloads that may use it. Absent if there are none.
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
    /// Name.
    pub namespace: String,
    /// Number of credentials, counted up to 1,000.
    pub credentials: i64,
    /// `true` if activations of the namespace are stopped.
    pub frozen: bool,
    /// Time of the freeze, RFC 3339 in UTC, if it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_at: Option<String>,
}

/// Activations and denied requests of all namespaces within a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceUsage {
    /// Start of the period, RFC 3339 in UTC.
    pub since: String,
    /// Number of activations in each hour since then, without renewals.
    pub activations: Vec<i64>,
    /// Number of denied requests of integrations in each hour since then.
    pub denied: Vec<i64>,
    /// Activations, by integration and namespace.
    pub uses: Vec<NamespaceUseItem>,
    /// Denied requests, by integration, namespace and reason.
    pub denials: Vec<NamespaceDenialItem>,
}

/// Activations of a namespace by an integration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceUseItem {
    /// ID of the integration, which may have been deleted.
    pub integration: String,
    /// Name of the namespace.
    pub namespace: String,
    /// Number of activations, without renewals.
    pub activations: i64,
    /// Time of the last activation, RFC 3339 in UTC.
    pub last_activated_at: String,
    /// Usual interval in days, if the activations are regular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_days: Option<i64>,
    /// Time of day in UTC, `HH:MM`, if the first activation of each day is always at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_time: Option<String>,
    /// `true` if the activations were regular and have stopped.
    pub silent: bool,
}

/// Denied requests of an integration for one namespace and reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceDenialItem {
    /// ID of the integration, which may have been deleted.
    pub integration: String,
    /// Name of the namespace. Absent if the token was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Action of the audit entries, which states the reason: for example `activation.refused-outside`.
    pub action: String,
    /// Number of requests.
    pub denied: i64,
    /// Time of the last request, RFC 3339 in UTC.
    pub last_denied_at: String,
}

/// A namespace to freeze or unfreeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamespaceRequest {
    /// Name, compared exactly.
    pub namespace: String,
}

/// The credentials and integrations that freezing or thawing a namespace affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenNamespace {
    /// Number of credentials in the namespace, counted up to 1,000.
    pub credentials: i64,
    /// Number of integrations that may activate it.
    pub integrations: i64,
    /// `true` if this request changed the state.
    pub changed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_are_omitted() {
        let request: Option<RotateIntegrationRequest> = serde_json::from_str("{}").ok();
        assert_eq!(request, Some(RotateIntegrationRequest::default()));
        assert_eq!(serde_json::to_string(&RotateIntegrationRequest::default()).unwrap_or_default(), "{}");
        let text = r#"{"name":"nightly","namespaces":["imports/*"]}"#;
        let request: Option<CreateIntegrationRequest> = serde_json::from_str(text).ok();
        assert_eq!(request.and_then(|request| serde_json::to_string(&request).ok()).as_deref(), Some(text));
        assert!(serde_json::from_str::<CreateIntegrationRequest>(r#"{"name":"a","namespaces":[],"x":1}"#).is_err());
    }

    #[test]
    fn token_is_serialized_and_not_printed() {
        let text = r#"{"id":"i","name":"n","namespaces":["a"],"token":"ovi_secret"}"#;
        let issued: Option<IssuedIntegration> = serde_json::from_str(text).ok();
        assert!(!format!("{issued:?}").contains("secret"));
        assert_eq!(issued.and_then(|issued| serde_json::to_string(&issued).ok()).as_deref(), Some(text));
    }
}

/// Activations and denied requests of an integration within a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntegrationUsageItem {
    /// ID of the integration, which may have been deleted.
    pub id: String,
    /// Number of activations, without renewals.
    pub activations: i64,
    /// Time of the last activation, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activated_at: Option<String>,
    /// Number of denied requests, and of activations that could not issue a credential.
    pub denied: i64,
    /// Time of the last of these, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_denied_at: Option<String>,
}
