//! Requests and responses of `…/accounts`, which admins of an organization manage.

use crate::WireSecret;
use crate::member::present;
use serde::{Deserialize, Serialize};

/// An account, or an invitation that was not accepted yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountItem {
    /// ID of the account.
    pub id: String,
    /// Address in canonical spelling.
    pub email: String,
    /// Role: `admin`, `editor` or `viewer`.
    pub role: String,
    /// State: `active`, `disabled`, `re-enrolling` or `invited`.
    pub state: String,
    /// Time of creation, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the last login, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login_at: Option<String>,
    /// `true` if correct logins may be rejected because of a lockout, too many consecutive failed logins, or too many
    /// wrong passcodes.
    #[serde(default)]
    pub locked: bool,
    /// Time since which it is locked, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_since: Option<String>,
    /// Highest number of consecutive failed logins from one network. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_logins: u32,
    /// Time of the last counted failed login, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failed_login_at: Option<String>,
    /// End of a temporary lockout, RFC 3339 in UTC, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<String>,
    /// `true` if logins are rejected until an admin or operator removes the lockout.
    #[serde(default, skip_serializing_if = "is_false")]
    pub login_closed: bool,
    /// Number of wrong passcodes since the last correct one. Absent if it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wrong_passcodes: u32,
    /// `true` if time-based passcodes are rejected after too many wrong ones.
    #[serde(default, skip_serializing_if = "is_false")]
    pub passcode_disabled: bool,
    /// Expiry of the enrolment code, RFC 3339 in UTC. For an invitation, and for an account that must enrol again while
    /// the code is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation_expires_at: Option<String>,
}

/// An invitation to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InviteRequest {
    /// E-mail address, in any spelling.
    pub email: String,
    /// Role of the future account.
    pub role: String,
}

/// Response to an invitation.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InvitedAccount {
    /// ID of the future account.
    pub id: String,
    /// Enrolment code. Shown only once.
    pub enrolment_code: WireSecret,
    /// Expiry of the code, RFC 3339 in UTC.
    pub expires_at: String,
}

/// Enrolment code for the re-enrolment of an account.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReEnrolment {
    /// Enrolment code. Shown only once.
    pub enrolment_code: WireSecret,
    /// Expiry of the code, RFC 3339 in UTC.
    pub expires_at: String,
}

/// A change of an account: exactly one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeAccountRequest {
    /// New role: `admin`, `editor` or `viewer`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub role: Option<String>,
    /// New state: `active` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub state: Option<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_contains_only_changed_fields() {
        let change = ChangeAccountRequest { role: Some("viewer".into()), ..ChangeAccountRequest::default() };
        let text = r#"{"role":"viewer"}"#;
        assert_eq!(serde_json::to_string(&change).unwrap_or_default(), text);
        assert_eq!(serde_json::from_str::<ChangeAccountRequest>(text).ok(), Some(change));
    }
}
