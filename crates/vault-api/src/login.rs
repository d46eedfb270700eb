//! Request and response of `POST {base_url}/login`.

use crate::WireSecret;
use crate::member::whole;
use serde::{Deserialize, Serialize};

/// Constant value of [`LoginResponse::token_type`].
pub const TOKEN_TYPE: &str = "Bearer";

/// A login.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// Address of the account, in any spelling.
    pub email: String,
    /// Password, compared exactly.
    pub password: WireSecret,
    /// The six digits of a time-based code, or a recovery code.
    pub passcode: WireSecret,
    /// Requested lifetime of the token in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub ttl: Option<i64>,
}

/// Response to a login.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginResponse {
    /// Access token, which all other operations require.
    pub access_token: WireSecret,
    /// Type of the token: `Bearer` (RFC 6750).
    pub token_type: String,
    /// Lifetime of the token, in seconds.
    pub expires_in: u32,
    /// Expiry of the token, RFC 3339 in UTC.
    pub expires_at: String,
}
