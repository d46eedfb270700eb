//! `…/activations`, on the listener of the integrations.

use crate::WireJson;
use serde::{Deserialize, Serialize};

/// A namespace to activate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivateRequest {
    /// The namespace.
    pub namespace: String,
    /// What for, to 200 characters: stands in the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The wished lifetime of the activation, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
    /// The form that credentials come in: `short`, `raw` or `prefer-short`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vend: Option<String>,
}

/// An activation that has just begun.
#[derive(Debug, Serialize, Deserialize)]
pub struct Activation {
    /// Its id.
    pub id: String,
    /// What was activated.
    pub namespace: String,
    /// When it is over, RFC 3339 in UTC.
    pub expires_at: String,
    /// The namespace's credentials, oldest first.
    pub credentials: Vec<ActivatedCredential>,
}

/// A credential as its integration gets it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ActivatedCredential {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its version.
    pub version: i64,
    /// The form it comes in: `raw` or `short`.
    pub form: String,
    /// Its data, in the shape of type and form.
    pub data: WireJson,
    /// When it ends by itself, RFC 3339 in UTC, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A live activation as lists show it: never what it opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationItem {
    /// Its id.
    pub id: String,
    /// What was activated.
    pub namespace: String,
    /// The form that was asked for.
    pub vend: String,
    /// How many credentials it opened.
    pub credentials: u32,
    /// When it began, RFC 3339 in UTC.
    pub begun_at: String,
    /// When it is over, RFC 3339 in UTC.
    pub expires_at: String,
}

/// A dry run to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The namespace.
    pub namespace: String,
    /// What the job will do: any of `list`, `read` and `write`.
    pub operations: Vec<String>,
    /// Until when it will, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// What a dry run found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedNamespace {
    /// The namespace.
    pub namespace: String,
    /// Whether each of its credentials can be used.
    pub usable: bool,
    /// Its credentials, oldest first.
    pub credentials: Vec<CheckedCredential>,
}

/// What a dry run found of one credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedCredential {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it can be used: nothing failed.
    pub usable: bool,
    /// The checks, in the order in which they were tried.
    pub checks: Vec<CheckItem>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckItem {
    /// What was tried.
    pub check: String,
    /// What it came to: `passed`, `failed`, `warning` or `skipped`.
    pub result: String,
    /// Why it did not pass, from a closed set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::SecretString;

    #[test]
    fn members_stand_in_the_documented_order_and_debug_shows_no_data() {
        let credential = ActivatedCredential {
            id: "c".into(),
            kind: "s3".into(),
            version: 1,
            form: "raw".into(),
            data: SecretString::from(r#"{"bucket":"b"}"#).into(),
            expires_at: None,
        };
        let activation = Activation {
            id: "a".into(),
            namespace: "n".into(),
            expires_at: "2026-11-20T12:00:00Z".into(),
            credentials: vec![credential],
        };
        assert!(!format!("{activation:?}").contains("bucket"), "{activation:?}");
        let text = r#"{"id":"a","namespace":"n","expires_at":"2026-11-20T12:00:00Z","credentials":[{"id":"c","type":"s3","version":1,"form":"raw","data":{"bucket":"b"}}]}"#;
        assert_eq!(serde_json::to_string(&activation).unwrap_or_default(), text);
        let read: Option<Activation> = serde_json::from_str(text).ok();
        assert_eq!(read.and_then(|read| serde_json::to_string(&read).ok()).as_deref(), Some(text));
    }

    #[test]
    fn what_is_not_asked_for_is_left_out() {
        let request = ActivateRequest { namespace: "n".into(), purpose: None, ttl: None, vend: None };
        assert_eq!(serde_json::to_string(&request).unwrap_or_default(), r#"{"namespace":"n"}"#);
        let check = CheckRequest { namespace: "n".into(), operations: vec!["read".into()], until: None };
        assert_eq!(serde_json::to_string(&check).unwrap_or_default(), r#"{"namespace":"n","operations":["read"]}"#);
    }
}
