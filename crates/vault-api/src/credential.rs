//! `…/organization-vault`.

use crate::WireJson;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A credential to save. `D` is what its data is held as, `L` what its labels are.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SaveRequest<D = WireJson, L = BTreeMap<String, String>> {
    /// Its type: `s3`, `azure_identity`, `gcs` or `direct-link`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its data, in the shape of its type.
    pub data: D,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<L>,
    /// Description of its use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When its issuer ends it, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// In which forms it may be issued: `any` or `short`; `any` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vend: Option<String>,
}

impl<D, L> SaveRequest<D, L> {
    /// A credential without any of the optional members.
    pub fn new(kind: impl Into<String>, namespace: impl Into<String>, data: D) -> Self {
        let (kind, namespace) = (kind.into(), namespace.into());
        Self { kind, namespace, data, labels: None, description: None, expires_at: None, vend: None }
    }
}

/// What is said of a credential, as a merge patch (RFC 7396): an absent member stays, `Some(None)` removes it. `L` is what
/// the labels are held as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescribeRequest<L = BTreeMap<String, Option<String>>> {
    /// Labels to set and, where there is no value, to remove.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<L>,
    /// Description of its use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// When its issuer ends the current version, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<String>>,
    /// In which forms it may be issued: `any` or `short`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vend: Option<String>,
}

impl<L> Default for DescribeRequest<L> {
    fn default() -> Self {
        Self { labels: None, description: None, expires_at: None, vend: None }
    }
}

/// The answer to a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedCredential {
    /// The credential's id.
    pub id: String,
}

/// New data for a credential. `D` is what the data is held as.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest<D = WireJson> {
    /// All data, in the format of the credential type.
    pub data: D,
    /// When the data expires, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Whether the new version waits to be promoted; `false` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<bool>,
}

/// The answer to a [`ReplaceRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplacedCredential {
    /// The credential's id.
    pub id: String,
    /// The number of the new version.
    pub version: i64,
}

/// Which version is to be the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// Version number.
    pub version: i64,
}

/// Data to compare with a credential's. `D` is what the data is held as.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MatchRequest<D = WireJson> {
    /// All data, in the format of the credential type.
    pub data: D,
}

/// The answer to a [`MatchRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchedCredential {
    /// Whether the credential's current data equals the data that was sent.
    pub same: bool,
}

/// Which version is to be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckCredentialRequest {
    /// Its number; if absent, the staged version, else the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// Whether a credential works, as far as is known. `T` is what its texts are held as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthItem<T = String> {
    /// `unchecked`, `healthy`, `failing`, `expiring` or `expired`.
    pub state: T,
    /// Why it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<T>,
    /// When it was last checked, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<T>,
    /// Since when it has had the state, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<T>,
}

/// An activation that issued a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CredentialUse {
    /// The integration's name; its id if it was deleted.
    pub integration: String,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// `raw` or `short`.
    pub form: String,
    /// Purpose that the integration stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The subject of the job's identity token, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

/// A version of a credential: never its data. `T` is what its texts are held as, `I` what its information is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionItem<T = String, I = Map<String, Value>> {
    /// Version number.
    pub version: i64,
    /// `current`, `staged` or `previous`.
    pub state: T,
    /// What may be shown of its data; absent where it is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<I>,
    /// Whether what is stored is damaged; an operator has to look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: T,
    /// What the last check of it found; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthItem<T>>,
}

/// A credential as lists show it: never its data. `T` is what its texts are held as, `I` what its information is, `L` what
/// its labels are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CredentialItem<T = String, I = Map<String, Value>, L = BTreeMap<String, String>> {
    /// ID.
    pub id: T,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: T,
    /// Its namespace.
    pub namespace: T,
    /// What may be shown of its data; absent where it is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<I>,
    /// Whether what is stored is damaged; an operator has to look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// The number of its current version.
    pub version: i64,
    /// When it was saved, RFC 3339 in UTC.
    pub created_at: T,
    /// When it was last changed, RFC 3339 in UTC.
    pub updated_at: T,
    /// Its labels; absent where they are damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<L>,
    /// In which forms it may be issued: `any` or `short`.
    pub vend: T,
    /// Whether it works, as far as is known.
    pub health: HealthItem<T>,
    /// Description of its use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
    /// When the current version expires, RFC 3339 in UTC: the earlier of what was declared and what the data says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<T>,
    /// When it was last activated, to the minute, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activated_at: Option<T>,
    /// The number of the version that waits to be promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged_version: Option<i64>,
}
