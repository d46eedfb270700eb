//! `…/account`: one's own account.

use crate::{Totp, WireSecret};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The caller's own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnAccount {
    /// ID.
    pub id: String,
    /// Address in canonical spelling.
    pub email: String,
    /// Its role: `admin`, `editor` or `viewer`.
    pub role: String,
    /// Its organization's name.
    pub organization: String,
    /// Since when its authenticator is in use, RFC 3339 in UTC.
    pub passcode_enrolled_at: String,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// What its owner should know.
    pub notices: Vec<AccountNotice>,
    /// What the server that answers is set up for.
    #[serde(default)]
    pub server: ServerAbilities,
}

/// What a server is set up for beyond what every server does, so that a client offers nothing that is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerAbilities {
    /// Whether a saved credential can be checked on request.
    pub checks: bool,
    /// Whether a save or replacement can be checked before it is made, with `?verify=true`.
    pub verify: bool,
    /// Whether this server sends mail to receivers.
    #[serde(default)]
    pub mail: bool,
    /// The address of the activation listener for integrations, as this server knows it; absent where its settings name
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_url: Option<String>,
}

/// Something that an account's owner should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountNotice {
    /// What it is, for scripts.
    pub code: Cow<'static, str>,
    /// When it happened, RFC 3339 in UTC; absent where it is how things are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The id of the account that it is about, if that is another one of the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// What it is and what to do about it, for people.
    pub detail: Cow<'static, str>,
}

/// A live session of one's own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionItem {
    /// ID.
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub created_at: String,
    /// When it ends at the latest, RFC 3339 in UTC.
    pub expires_at: String,
    /// Its latest use, to the minute, RFC 3339 in UTC.
    pub last_used_at: String,
    /// The network it was made from.
    pub network: String,
    /// What the client that logged in said it is: its `User-Agent`, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// What proves that an account's owner asks, not only somebody with its token.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProofRequest {
    /// The password.
    pub password: WireSecret,
    /// The six digits of a time-based code, or a recovery code.
    pub passcode: WireSecret,
}

/// A change of one's own password.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangePasswordRequest {
    /// The current password.
    pub password: WireSecret,
    /// The six digits of a time-based code, or a recovery code.
    pub passcode: WireSecret,
    /// The password from now on.
    pub new_password: WireSecret,
}

/// A new passcode seed, in force once it is confirmed. Shown this once.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewPasscode {
    /// Set-up data for an authenticator app.
    pub totp: Totp,
}

/// The confirmation of a new passcode seed.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmPasscodeRequest {
    /// A time-based code of the new seed.
    pub passcode: WireSecret,
}

/// New recovery codes. Shown this once.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewRecoveryCodes {
    /// The codes; those before are dead.
    pub recovery_codes: Vec<WireSecret>,
}
