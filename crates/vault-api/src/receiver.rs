//! Requests and responses of `…/receivers`: notifications, which admins of an organization manage.

use crate::WireSecret;
use crate::member::present;
use serde::{Deserialize, Serialize};

/// A new receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AddReceiverRequest {
    /// Channel: `webhook` or `email`.
    pub kind: String,
    /// URL of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub url: Option<String>,
    /// E-mail address, of an active account of the organization.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub to: Option<String>,
    /// Events of which it is notified. Default and empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub events: Option<Vec<String>>,
}

/// A change of a receiver. Absent fields are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeReceiverRequest {
    /// New state: `active` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<String>,
    /// Events of which it is notified. Empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub events: Option<Vec<String>>,
}

/// A receiver without its signing secret. Only the host of a URL is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiverItem {
    /// ID of the receiver.
    pub id: String,
    /// Channel: `webhook` or `email`.
    pub kind: String,
    /// Masked URL of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// E-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Events of which it is notified.
    pub events: Vec<String>,
    /// State: `active`, `failing` or `disabled`.
    pub state: String,
    /// Time of the addition, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the last accepted delivery, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivered_at: Option<String>,
    /// Reason why the last attempt failed: `unknown-host`, `blocked-address`, `proxy-failed`, `unreachable`,
    /// `untrusted-certificate`, `redirected`, `gone`, `refused`, `no-mail-server`, `starttls-not-offered`,
    /// `login-not-offered`, `no-member` or `damaged`. Absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A receiver with its new signing secret.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuedReceiver {
    /// The receiver.
    #[serde(flatten)]
    pub receiver: ReceiverItem,
    /// Signing secret of a webhook, shown only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<WireSecret>,
}

/// A finished or pending delivery of an event to a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeliveryItem {
    /// ID of the event. A webhook gets it as `webhook-id`, after `msg_`.
    pub id: String,
    /// Kind of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// Time of the event, RFC 3339 in UTC.
    pub timestamp: String,
    /// State: `waiting`, `delivered` or `failed`.
    pub state: String,
    /// Number of attempts.
    pub attempts: i64,
    /// Time of the last attempt, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<String>,
    /// Earliest time of the next attempt, RFC 3339 in UTC. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// Reason why the last attempt failed. Absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
