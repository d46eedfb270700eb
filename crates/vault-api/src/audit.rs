//! Responses of `…/audit`.

use serde::{Deserialize, Serialize};

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditItem {
    /// ID of the entry.
    pub id: String,
    /// Time of the event, RFC 3339 in UTC.
    pub at: String,
    /// ID of the organization, in commands and deliveries. Responses over a network omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub organization: Option<String>,
    /// Kind of the actor: `account`, `integration`, `operator`, `system`, `embedder` or `unknown`.
    pub actor: String,
    /// Account that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Session that the account used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Integration that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    /// Action, such as `credential.saved`.
    pub action: String,
    /// Affected object: a kind and, if there are several, an ID, such as `credential:0193…`.
    pub subject: String,
    /// Number of occurrences within a minute before `at`, or 1 for a single event.
    pub count: i64,
    /// Namespace that the entry is about.
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
    /// Changed values, old and new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AuditedChange>,
    /// Issued credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<AuditedCredential>,
    /// Number of the checkpoint that contains the entry, in commands of the operator and deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub checkpoint: Option<i64>,
}

/// A change of one field. Without `from` and `to`, its values are sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedChange {
    /// Name of the field, such as `role`.
    pub field: String,
    /// Old value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// New value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A credential that an activation issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedCredential {
    /// ID of the credential.
    pub id: String,
    /// Issued version.
    pub version: i64,
    /// Issued form: `raw` or `short`.
    pub form: String,
    /// Expiry of the short-lived credential, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}
