//! `…/organization-vault`.

use crate::WireJson;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A credential to save. `D` is what its data is held as.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest<D = WireJson> {
    /// Its type: `s3`, `azure_identity`, `gcs` or `direct-link`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its data, in the shape of its type.
    pub data: D,
}

/// The answer to a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCredential {
    /// The credential's id.
    pub id: String,
}

/// New data for a credential. `D` is what the data is held as.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest<D = WireJson> {
    /// The data, whole, in the shape of the credential's type.
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
pub struct ReplacedCredential {
    /// The credential's id.
    pub id: String,
    /// The number of the new version.
    pub version: i64,
}

/// Which version is to be the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// Its number.
    pub version: i64,
}

/// A version of a credential: never its data. `T` is what its texts are held as, `I` what its information is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionItem<T = String, I = Map<String, Value>> {
    /// Its number.
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
}

/// A credential as lists show it: never its data. `T` is what its texts are held as, `I` what its information is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CredentialItem<T = String, I = Map<String, Value>> {
    /// Its id.
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
    /// When the current version expires, RFC 3339 in UTC: the earlier of what was declared and what the data says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<T>,
    /// The number of the version that waits to be promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged_version: Option<i64>,
}
