//! `…/activations`: what an integration asks the activation listener for.

use crate::{CheckItem, WireJson};
use serde::{Deserialize, Serialize};

/// An activation to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActivateRequest {
    /// The namespace, returned to the caller.
    pub namespace: String,
    /// The reason, recorded in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The requested lifetime in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
    /// The requested form: `raw`, `short` or `prefer-short`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vend: Option<String>,
}

/// The renewal of an activation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// The requested lifetime from now, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
}

/// An activation that has begun, or was renewed.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BegunActivation {
    /// ID.
    pub id: String,
    /// What was activated.
    pub namespace: String,
    /// When it is over, RFC 3339 in UTC.
    pub expires_at: String,
    /// The namespace's credentials, oldest first.
    pub credentials: Vec<VendedCredential>,
}

/// A credential as an integration is handed it.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendedCredential {
    /// ID.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its version.
    pub version: i64,
    /// The form it came in: `raw` or `short`.
    pub form: String,
    /// Its data, in the shape of its type and form.
    pub data: WireJson,
    /// When it ends by itself, RFC 3339 in UTC, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A live activation as lists show it: never data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActivationItem {
    /// ID.
    pub id: String,
    /// What was activated.
    pub namespace: String,
    /// Requested form.
    pub vend: String,
    /// How many credentials it opened.
    pub credential_count: u32,
    /// When it began, RFC 3339 in UTC.
    pub begun_at: String,
    /// When it is over, RFC 3339 in UTC.
    pub expires_at: String,
}

/// A dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The namespace, returned to the caller.
    pub namespace: String,
    /// What the job needs: `list`, `read`, `write`. None at all: only whether each store knows its credential.
    pub operations: Vec<String>,
    /// When the job will be done, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The form that the job's activation will request: `raw`, `short` or `prefer-short`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vend: Option<String>,
}

/// What a dry run found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedNamespace {
    /// The namespace.
    pub namespace: String,
    /// Whether every credential can be used.
    pub usable: bool,
    /// Its credentials, oldest first.
    pub credentials: Vec<CheckedCredential>,
}

/// What a dry run found of one credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedCredential {
    /// The credential.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it can be used: no check failed.
    pub usable: bool,
    /// The form that was tried, `raw` or `short`: the one that an activation would issue. Absent if the storage was not
    /// asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The checks, in the order in which they were tried.
    pub checks: Vec<CheckItem>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_crosses_the_wire_as_it_stands_and_is_not_printed() {
        let text = concat!(
            r#"{"id":"a","namespace":"n","expires_at":"t","credentials":[{"id":"c","type":"s3","version":1,"#,
            r#""form":"raw","data":{"secret_access_key":"hidden \" \u00e4"}}]}"#
        );
        let begun: Option<BegunActivation> = serde_json::from_str(text).ok();
        assert!(!format!("{begun:?}").contains("hidden"));
        assert_eq!(begun.and_then(|begun| serde_json::to_string(&begun).ok()).as_deref(), Some(text));
    }

    #[test]
    fn what_may_be_left_out_is_left_out() {
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
