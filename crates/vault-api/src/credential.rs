//! `…/organization-vault`.

use crate::WireJson;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A credential to save.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest {
    /// Its type: `s3`, `azure_identity`, `gcs` or `direct-link`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its data, in the shape of its type.
    pub data: WireJson,
}

/// The answer to a save.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCredential {
    /// The credential's id.
    pub id: String,
}

/// A credential as lists show it: never its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CredentialItem {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// What may be shown of its data; empty where it is damaged.
    #[serde(default)]
    pub information: Map<String, Value>,
    /// Whether what is stored is damaged; an operator has to look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Its version.
    pub version: i64,
    /// When it was saved, RFC 3339 in UTC.
    pub created_at: String,
    /// When it was last changed, RFC 3339 in UTC.
    pub updated_at: String,
}
