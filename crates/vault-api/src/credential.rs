//! Requests and responses of `…/organization-vault`.

use crate::member::{number, present, whole};
use crate::{WireJson, WireSecret};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A credential to save. `D` is what represents its data, `L` what represents its labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, bound(deserialize = "D: Deserialize<'de>, L: Deserialize<'de>"))]
pub struct SaveRequest<D = WireJson, L = BTreeMap<String, String>> {
    /// Credential type: `s3`, `azure_identity`, `gcs`, `direct-link`, `s3-federated`, `azure-federated` or
    /// `gcs-federated`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Data in the format of the type.
    pub data: D,
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub labels: Option<L>,
    /// Description of its use.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub description: Option<String>,
    /// Declared expiry in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub expires_at: Option<String>,
    /// Forms in which it may be issued: `any` or `short`. Default: `any`, or `short` for a keyless type.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub vend: Option<String>,
}

impl<D, L> SaveRequest<D, L> {
    /// Creates a request without optional fields.
    pub fn new(kind: impl Into<String>, namespace: impl Into<String>, data: D) -> Self {
        let (kind, namespace) = (kind.into(), namespace.into());
        Self { kind, namespace, data, labels: None, description: None, expires_at: None, vend: None }
    }
}

/// A merge patch (RFC 7396) of a credential's metadata: an absent field is unchanged, `Some(None)` removes it. `L` is
/// what represents the labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, bound(deserialize = "L: Deserialize<'de>"))]
pub struct DescribeRequest<L = BTreeMap<String, Option<String>>> {
    /// Labels to set or, if the value is `null`, to remove.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub labels: Option<L>,
    /// Description of its use.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub description: Option<Option<String>>,
    /// Declared expiry of the current version in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub expires_at: Option<Option<String>>,
    /// Forms in which it may be issued: `any` or `short`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub vend: Option<String>,
}

impl<L> Default for DescribeRequest<L> {
    fn default() -> Self {
        Self { labels: None, description: None, expires_at: None, vend: None }
    }
}

/// Text that contains credentials of other programs.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// The text, such as a profile, variables, a connection string or JSON of a tool.
    pub text: WireSecret,
}

/// A key to search for.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FindKeyRequest {
    /// The key ID or its last four or more characters, the fingerprint of a version, or a text with the whole key.
    pub text: WireSecret,
}

/// A version of a credential that contains a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundKey {
    /// ID of the credential.
    pub id: String,
    /// Namespace of the credential.
    pub namespace: String,
    /// Type of the credential.
    #[serde(rename = "type")]
    pub kind: String,
    /// Version number.
    pub version: i64,
    /// State of the version: `current`, `staged` or `previous`.
    pub state: String,
    /// What it has in common with the key: `data` (everything), `fingerprint`, or `key-id` (the end of the key ID).
    pub matched: String,
}

/// A credential in a text, or the reason why it cannot be saved.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadEntry {
    /// Name in the text. Empty if it has none.
    pub name: String,
    /// Credential type. Absent if the entry is refused.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The fields that the text sets, as a save accepts them. Required fields may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<WireJson>,
    /// Expiry in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Names in the text that set no field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What must be added, although the type does not require it: the endpoint or the storage account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<ReadViolation>,
    /// Why the entry cannot be saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ReadViolation>,
}

/// An error in a text. It contains no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadViolation {
    /// Number of the line, from 1.
    pub line: usize,
    /// Name in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Explanation for a person.
    pub reason: String,
}

/// Response to a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedCredential {
    /// ID of the credential.
    pub id: String,
}

/// New data for a credential. `D` is what represents the data.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest<D = WireJson> {
    /// All data, in the format of the credential type.
    pub data: D,
    /// Declared expiry of the data in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub expires_at: Option<String>,
    /// `true` to stage the new version without promoting it. Default: `false`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub stage: Option<bool>,
}

/// Response to a replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplacedCredential {
    /// ID of the credential.
    pub id: String,
    /// Number of the new version.
    pub version: i64,
}

/// The version to promote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// Version number.
    #[serde(deserialize_with = "number")]
    pub version: i64,
}

/// Data to compare with that of a credential. `D` is what represents the data.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MatchRequest<D = WireJson> {
    /// All data, in the format of the credential type.
    pub data: D,
}

/// Response to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchedCredential {
    /// `true` if the credential's current data equals the sent data.
    pub same: bool,
}

/// The version to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckCredentialRequest {
    /// Version number. Default: the staged version, otherwise the current one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub version: Option<i64>,
}

/// Health of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthItem {
    /// `unchecked`, `healthy`, `failing`, `expiring` or `expired`.
    pub state: String,
    /// Reason of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the last check, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<String>,
    /// Time since which it has this state, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The trust that a keyless credential needs at its provider, and the steps to configure it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderTrust {
    /// Issuer of the tokens (`iss`).
    pub issuer: String,
    /// Subject of the credential (`sub`).
    pub subject: String,
    /// Audience of the tokens (`aud`).
    pub audience: String,
    /// Steps in their order.
    pub steps: Vec<ProviderTrustStep>,
}

/// One step of the configuration of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderTrustStep {
    /// Description of the step.
    pub title: String,
    /// Language of the text: `sh`, `json` or `text`.
    pub language: String,
    /// Command, document or values.
    pub text: String,
}

/// An activation that issued a credential, including its renewals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CredentialUse {
    /// Name of the integration, or its ID if it was deleted.
    pub integration: String,
    /// Start of the activation, RFC 3339 in UTC.
    pub at: String,
    /// Time at which the activation expires or expired, RFC 3339 in UTC.
    pub expires_at: String,
    /// Time at which the integration ended the activation before it expired, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Version that was issued last.
    pub version: i64,
    /// Form that was issued last: `raw` or `short`.
    pub form: String,
    /// Purpose that the integration stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Subject of the job's identity token, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

/// The activations of the last 30 days in which an integration received a version of a credential last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CredentialHolder {
    /// Name of the integration, or its ID if it was deleted.
    pub integration: String,
    /// Version.
    pub version: i64,
    /// `true` if it is the current version, which is issued now.
    pub current: bool,
    /// Number of activations.
    pub activations: i64,
    /// Start of the last one, RFC 3339 in UTC.
    pub last_activated_at: String,
    /// Time until which the integration may use the version, RFC 3339 in UTC. Absent if all activations have ended or expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<String>,
}

/// A version of a credential, without its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionItem {
    /// Version number.
    pub version: i64,
    /// State: `current`, `staged` or `previous`.
    pub state: String,
    /// Visible part of the data. Absent if it is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<Map<String, Value>>,
    /// `true` if stored data is damaged and an operator must repair it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Time of creation, RFC 3339 in UTC.
    pub created_at: String,
    /// Result of the last check. Absent before the first check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthItem>,
}

/// A credential in a list, without its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CredentialItem {
    /// ID of the credential.
    pub id: String,
    /// Credential type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Visible part of the data. Absent if it is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<Map<String, Value>>,
    /// `true` if stored data is damaged and an operator must repair it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Number of the current version.
    pub version: i64,
    /// Time of the save, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the last change, RFC 3339 in UTC.
    pub updated_at: String,
    /// Labels. Absent if they are damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Forms in which it may be issued: `any` or `short`.
    pub vend: String,
    /// Health, from the latest check and the expiry.
    pub health: HealthItem,
    /// Description of its use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Expiry of the current version, RFC 3339 in UTC: the earlier of the declared expiry and the one in the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of the last activation, truncated to the minute, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activated_at: Option<String>,
    /// Number of the staged version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged_version: Option<i64>,
    /// Number of the version that was current before, while it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<i64>,
    /// Time until which the previous version is kept, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_version_until: Option<String>,
}
