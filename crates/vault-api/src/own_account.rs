//! Requests and responses of `…/account`: the caller's own account.

use crate::{Totp, WireSecret};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The caller's own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnAccount {
    /// ID of the account.
    pub id: String,
    /// Address in canonical spelling.
    pub email: String,
    /// Role: `admin`, `editor` or `viewer`.
    pub role: String,
    /// Name of its organization.
    pub organization: String,
    /// ID of its organization.
    pub organization_id: String,
    /// Time since which its authenticator is in use, RFC 3339 in UTC.
    pub passcode_enrolled_at: String,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// Notices for its user.
    pub notices: Vec<AccountNotice>,
    /// Optional features of the server.
    #[serde(default)]
    pub server: ServerAbilities,
}

/// Optional features of a server, so that a client does not offer unavailable ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerAbilities {
    /// `true` if `?verify=true` is available, which checks the data before a save or replacement.
    pub verify: bool,
    /// `true` if the server can send e-mail to receivers.
    #[serde(default)]
    pub mail: bool,
    /// URL of the activation listener for integrations. Absent if the server's settings do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_url: Option<String>,
    /// Issuer of the tokens for keyless credentials. Absent if keyless credentials are not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub federation_issuer: Option<String>,
}

/// A notice for the user of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountNotice {
    /// Code of the notice, for programs.
    pub code: Cow<'static, str>,
    /// Time of the event, RFC 3339 in UTC. Absent for a current state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// ID of the account that it is about, if it is another one of the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Description and next step, for users.
    pub detail: Cow<'static, str>,
}

/// An active session of the caller's own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionItem {
    /// ID of the session.
    pub id: String,
    /// Start time, RFC 3339 in UTC.
    pub created_at: String,
    /// Expiry, RFC 3339 in UTC.
    pub expires_at: String,
    /// Time of the last use, truncated to the minute, RFC 3339 in UTC.
    pub last_used_at: String,
    /// Network of the login.
    pub network: String,
    /// `User-Agent` of the client that logged in, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// `true` for the session of this request.
    pub current: bool,
}

/// A concern that the caller's own account has set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetAsideItem {
    /// Key of the concern.
    pub concern: String,
    /// Time at which it is shown again, RFC 3339 in UTC.
    pub until: String,
}

/// Sets a concern aside, or shows it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetAsideRequest {
    /// Key of the concern, at most 500 bytes. It contains the cause, so that another problem has another key.
    pub concern: String,
    /// Time at which it is shown again, RFC 3339, at most one year ahead. `null`, or absent, shows it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Factors for re-authentication.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProofRequest {
    /// Password.
    pub password: WireSecret,
    /// The six digits of a time-based code, or a recovery code.
    pub passcode: WireSecret,
}

/// A change of the caller's own password.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangePasswordRequest {
    /// Current password.
    pub password: WireSecret,
    /// The six digits of a time-based code, or a recovery code.
    pub passcode: WireSecret,
    /// New password.
    pub new_password: WireSecret,
}

/// A new TOTP secret, which is used after its confirmation. Shown only once.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewPasscode {
    /// Set-up data for an authenticator app.
    pub totp: Totp,
}

/// Confirmation of a new TOTP secret.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmPasscodeRequest {
    /// A time-based code of the new TOTP secret.
    pub passcode: WireSecret,
}

/// New recovery codes. Shown only once.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewRecoveryCodes {
    /// Recovery codes. The previous ones are invalid.
    pub recovery_codes: Vec<WireSecret>,
}
