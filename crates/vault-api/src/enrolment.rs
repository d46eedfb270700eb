//! Requests and responses of `…/enrol`: acceptance of an invitation.

use crate::WireSecret;
use serde::{Deserialize, Serialize};

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
    /// A time-based code of the latest [`EnrolResponse::totp`].
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
