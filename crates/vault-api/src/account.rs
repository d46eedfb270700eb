//! `…/accounts`: an organization's accounts, as its admins administer them.

use crate::WireSecret;
use serde::{Deserialize, Serialize};

/// An account, or an invitation that was not taken up yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountItem {
    /// ID.
    pub id: String,
    /// Address in canonical spelling.
    pub email: String,
    /// Its role: `admin`, `editor` or `viewer`.
    pub role: String,
    /// Its state: `active`, `disabled`, `re-enrolling` or `invited`.
    pub state: String,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// When it last logged in, RFC 3339 in UTC, if it ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login_at: Option<String>,
    /// Whether right logins may be refused: a wait lasts, too many logins failed in a row, or too many passcodes were
    /// wrong.
    #[serde(default)]
    pub locked: bool,
    /// Until when the enrolment code works, RFC 3339 in UTC; of an invitation, and of an account whose owner has to enrol
    /// again while the code works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation_expires_at: Option<String>,
}

/// An invitation to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InviteRequest {
    /// Whom to invite, in any spelling of the address.
    pub email: String,
    /// What the account will be allowed.
    pub role: String,
}

/// The answer to an invitation.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InvitedAccount {
    /// The id that the account will have.
    pub id: String,
    /// What its owner enrols with. Shown this once.
    pub enrolment_code: WireSecret,
    /// Until when the code works, RFC 3339 in UTC.
    pub expires_at: String,
}

/// How the owner of an account enrols again.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReEnrolment {
    /// What the owner enrols with. Shown this once.
    pub enrolment_code: WireSecret,
    /// Until when the code works, RFC 3339 in UTC.
    pub expires_at: String,
}

/// A change of an account: exactly one of the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeAccountRequest {
    /// The new role: `admin`, `editor` or `viewer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The new state: `active` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_only_what_changes() {
        let change = ChangeAccountRequest { role: Some("viewer".into()), ..ChangeAccountRequest::default() };
        let text = r#"{"role":"viewer"}"#;
        assert_eq!(serde_json::to_string(&change).unwrap_or_default(), text);
        assert_eq!(serde_json::from_str::<ChangeAccountRequest>(text).ok(), Some(change));
    }
}
