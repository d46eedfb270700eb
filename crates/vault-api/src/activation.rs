//! Requests and responses of `…/activations`, which integrations send to the activation listener.

use crate::member::{present, whole};
use crate::{CheckItem, WireJson};
use serde::{Deserialize, Serialize};

/// An activation to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActivateRequest {
    /// Namespace.
    pub namespace: String,
    /// Purpose, which the audit log records.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub purpose: Option<String>,
    /// Requested lifetime in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub ttl: Option<i64>,
    /// Requested form: `raw`, `short` or `prefer-short`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub vend: Option<String>,
}

/// A renewal of an activation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// Requested lifetime from now, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub ttl: Option<i64>,
}

/// A new or renewed activation.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BegunActivation {
    /// ID of the activation.
    pub id: String,
    /// Activated namespace.
    pub namespace: String,
    /// Expiry, RFC 3339 in UTC.
    pub expires_at: String,
    /// Credentials of the namespace, oldest first.
    pub credentials: Vec<VendedCredential>,
}

/// A credential as issued to an integration.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendedCredential {
    /// ID of the credential.
    pub id: String,
    /// Credential type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Issued version.
    pub version: i64,
    /// Issued form: `raw` or `short`.
    pub form: String,
    /// Data in the format of its type and form.
    pub data: WireJson,
    /// Expiry of a short-lived credential, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// An active activation in a list, without data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActivationItem {
    /// ID of the activation.
    pub id: String,
    /// Activated namespace.
    pub namespace: String,
    /// Requested form.
    pub vend: String,
    /// Number of issued credentials.
    pub credential_count: u32,
    /// Start time, RFC 3339 in UTC.
    pub started_at: String,
    /// Expiry, RFC 3339 in UTC.
    pub expires_at: String,
}

/// A check of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Namespace.
    pub namespace: String,
    /// Operations that the job requires: `list`, `read`, `write`. If empty, only checks whether each storage accepts
    /// its credential.
    pub operations: Vec<String>,
    /// Planned end of the job in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub until: Option<String>,
    /// Form that the job's activation will request: `raw`, `short` or `prefer-short`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub vend: Option<String>,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedNamespace {
    /// Namespace.
    pub namespace: String,
    /// `true` if all credentials can be used.
    pub usable: bool,
    /// Credentials, oldest first.
    pub credentials: Vec<CheckedCredential>,
}

/// Result of a check for one credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedCredential {
    /// ID of the credential.
    pub id: String,
    /// Credential type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `true` if no check of the credential failed.
    pub usable: bool,
    /// Tested form, which is the one that an activation would issue: `raw` or `short`. Absent if the storage was not
    /// contacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Checks, in the order of their execution.
    pub checks: Vec<CheckItem>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_sent_unchanged_and_not_printed() {
        let text = concat!(
            r#"{"id":"a","namespace":"n","expires_at":"t","credentials":[{"id":"c","type":"s3","version":1,"#,
            r#""form":"raw","data":{"secret_access_key":"hidden \" \u00e4"}}]}"#
        );
        let started: Option<BegunActivation> = serde_json::from_str(text).ok();
        assert!(!format!("{started:?}").contains("hidden"));
        assert_eq!(started.and_then(|started| serde_json::to_string(&started).ok()).as_deref(), Some(text));
    }

    #[test]
    fn optional_fields_are_omitted() {
        for text in [r#"{"namespace":"a"}"#, r#"{"namespace":"a","purpose":"p","ttl":60,"vend":"raw"}"#] {
            let request: Option<ActivateRequest> = serde_json::from_str(text).ok();
            assert_eq!(request.and_then(|request| serde_json::to_string(&request).ok()).as_deref(), Some(text));
        }
        for text in [
            r#"{"namespace":"a","operations":[]}"#,
            r#"{"namespace":"a","operations":["list"],"until":"t","vend":"short"}"#,
        ] {
            let request: Option<CheckRequest> = serde_json::from_str(text).ok();
            assert_eq!(request.and_then(|request| serde_json::to_string(&request).ok()).as_deref(), Some(text));
        }
    }
}
