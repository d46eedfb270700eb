//! `…/receivers`: where the vault reports what happens, managed by an organization's admins.

use crate::WireSecret;
use serde::{Deserialize, Serialize};

/// A new receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AddReceiverRequest {
    /// `webhook` or `email`.
    pub kind: String,
    /// The URL of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The e-mail address, of an active account of the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The events that it is told; absent or empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
}

/// A change of a receiver; absent members stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeReceiverRequest {
    /// `active` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The events that it is told; empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
}

/// A receiver: never its signing secret, and of a URL the host alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiverItem {
    /// ID.
    pub id: String,
    /// `webhook` or `email`.
    pub kind: String,
    /// The URL of a webhook, masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The events that it is told.
    pub events: Vec<String>,
    /// `active`, `failing` or `disabled`.
    pub state: String,
    /// When it was added, RFC 3339 in UTC.
    pub created_at: String,
    /// When it last accepted something, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivered_at: Option<String>,
    /// Why the last attempt failed: `unknown-host`, `blocked-address`, `unreachable`, `untrusted-certificate`, `redirected`,
    /// `gone`, `refused`, `no-mail-server`, `starttls-not-offered`, `login-not-offered`, `no-member` or `damaged`; absent: it did
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A receiver and its new signing secret.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuedReceiver {
    /// The receiver.
    #[serde(flatten)]
    pub receiver: ReceiverItem,
    /// The signing secret of a webhook, shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<WireSecret>,
}

/// An event that was, or is to be, delivered to a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeliveryItem {
    /// The event's id. A webhook gets it as `webhook-id`, after `msg_`.
    pub id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened, RFC 3339 in UTC.
    pub timestamp: String,
    /// `waiting`, `delivered` or `failed`.
    pub state: String,
    /// Number of attempts.
    pub attempts: i64,
    /// When it was attempted last, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<String>,
    /// When it is attempted next at the earliest, RFC 3339 in UTC; absent: no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// Why the last attempt failed; absent: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
