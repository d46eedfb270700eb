//! `…/enrol`: from an invitation to an account.

use crate::WireSecret;
use serde::{Deserialize, Serialize};

/// An invited person's side of an enrolment.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EnrolRequest {
    /// The code of the invitation.
    pub enrolment_code: WireSecret,
    /// The password that the account is to have.
    pub password: WireSecret,
}

/// The answer to an enrolment: shown this once, and dead as soon as another one is drafted.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnrolResponse {
    /// Address of the future account.
    pub email: String,
    /// Set-up data for an authenticator app.
    pub totp: Totp,
    /// The recovery codes.
    pub recovery_codes: Vec<WireSecret>,
}

/// The end of an enrolment.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfirmEnrolmentRequest {
    /// The code of the invitation.
    pub enrolment_code: WireSecret,
    /// A time-based code of the newest [`EnrolResponse::totp`].
    pub passcode: WireSecret,
}

/// What an authenticator is set up with.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totp {
    /// The shared secret as Base32 text.
    pub secret: WireSecret,
    /// The `otpauth://totp/…` address that an app scans.
    pub uri: WireSecret,
}
