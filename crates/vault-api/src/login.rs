//! `POST {base_url}/login`.

use crate::WireSecret;
use serde::{Deserialize, Serialize};

/// What [`LoginResponse::token_type`] always is.
pub const TOKEN_TYPE: &str = "Bearer";

/// A login.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The account's address, in any spelling.
    pub email: String,
    /// The password, compared exactly.
    pub password: WireSecret,
    /// The six digits of a time-based code, or a recovery code.
    pub passcode: WireSecret,
    /// The requested lifetime of the token in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
}

/// The answer to a login.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginResponse {
    /// The token that every other operation asks for.
    pub access_token: WireSecret,
    /// [`TOKEN_TYPE`].
    pub token_type: String,
    /// The token's lifetime, in seconds.
    pub expires_in: u32,
    /// When the token stops working, RFC 3339 in UTC.
    pub expires_at: String,
}
