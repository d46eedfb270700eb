//! `…/audit`.

use serde::{Deserialize, Serialize};

/// An entry of the audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditItem {
    /// ID.
    pub id: String,
    /// When it happened, RFC 3339 in UTC.
    pub at: String,
    /// Who acted: `account`, `integration`, `operator`, `system`, `embedder` or `unknown`.
    pub actor: String,
    /// The account that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The session through which it acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The integration that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    /// What was done, such as `credential.saved`.
    pub action: String,
    /// To what: a kind and, where there are several, an id, such as `credential:0193…`.
    pub subject: String,
    /// How often within a minute, before `at`; 1 for single acts.
    pub count: i64,
    /// The namespace that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Purpose that the integration stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Network from which the request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// ID of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What was changed, from what to what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AuditedChange>,
    /// The credentials that were issued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<AuditedCredential>,
}

/// A change of one field. Without `from` and `to`, its values are sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedChange {
    /// The field's name, such as `role`.
    pub field: String,
    /// What it was, unless it was nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is, unless it is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A credential that an activation issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedCredential {
    /// ID.
    pub id: String,
    /// Which version of it.
    pub version: i64,
    /// `raw` or `short`.
    pub form: String,
    /// When the short-lived credential ends, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}
