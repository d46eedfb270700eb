//! Requests and responses of `…/enrol`: acceptance of an invitation.

use crate::WireSecret;
use serde::{Deserialize, Serialize};

/// Request for the invitation of an enrolment code.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InvitationRequest {
    /// Enrolment code of the invitation.
    pub enrolment_code: WireSecret,
}

/// An invitation that can be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InvitationItem {
    /// Address of the account.
    pub email: String,
    /// Name of the organization.
    pub organization: String,
    /// Address of the admin who created the invitation. Absent if an operator did, or if that account was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invited_by: Option<String>,
    /// Expiry of the enrolment code, RFC 3339 in UTC.
    pub expires_at: String,
}

/// Request of an invited user to enrol.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// Enrolment code of the invitation.
    pub enrolment_code: WireSecret,
    /// Password of the future account.
    pub password: WireSecret,
}

/// Response to an enrolment. It is shown only once, and invalid after another draft.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnrolResponse {
    /// Address of the future account.
    pub email: String,
    /// Set-up data for an authenticator app.
    pub totp: Totp,
    /// Recovery codes.
    pub recovery_codes: Vec<WireSecret>,
}

/// Confirmation of an enrolment.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmEnrolmentRequest {
    /// Enrolment code of the invitation.
    pub enrolment_code: WireSecret,
    /// A time-based code of the latest secret in `totp` of the response to the enrolment.
    pub passcode: WireSecret,
}

/// Set-up data for an authenticator app.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totp {
    /// Shared secret as Base32 text.
    pub secret: WireSecret,
    /// `otpauth://totp/…` address that an app scans.
    pub uri: WireSecret,
}
