//! Access tokens: of the service account, and downscoped from it.

use super::assertion;
use crate::guard::{Answer, GuardedClient};
use crate::text::encode_pairs;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use vault_core::check::CheckReason;
use vault_core::credential::{KeyFile, SecretText};
use vault_core::time::Timestamp;

/// Type of an access token in an exchange.
pub(super) const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// Default lifetime of a token in seconds.
pub(super) const LIFETIME: i64 = 3_600;

pub(super) struct AccessToken {
    pub(super) text: SecretText,
    /// Lifetime in seconds.
    pub(super) seconds: i64,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<i64>,
}

/// An error response (RFC 6749, section 5.2).
#[derive(Deserialize)]
pub(super) struct Refused {
    #[serde(default)]
    pub(super) error: String,
    #[serde(default)]
    pub(super) error_description: String,
}

/// Requests a token of the service account.
pub(super) async fn ask(client: &GuardedClient, key: &KeyFile, now: Timestamp) -> Result<AccessToken, CheckReason> {
    let address = key.token_uri().ok_or(CheckReason::ForeignTokenUri)?;
    let assertion = assertion::sign(key, &address, now).ok_or(CheckReason::SignatureMismatch)?;
    let form =
        encode_pairs(&[("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &assertion)]);
    granted(client, &address, form, LIFETIME, why).await
}

/// Exchanges a token for one with this access boundary (RFC 8693), at the service with the address `exchange`.
pub(super) async fn narrow(
    client: &GuardedClient,
    exchange: &str,
    boundary: &Value,
    wide: &AccessToken,
) -> Result<AccessToken, CheckReason> {
    let form = encode_pairs(&[
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("subject_token_type", ACCESS_TOKEN),
        ("requested_token_type", ACCESS_TOKEN),
        ("subject_token", wide.text.expose()), // sent for the exchange
        ("options", &boundary.to_string()),
    ]);
    let mut narrow = granted(client, &format!("{exchange}/v1/token"), form, wide.seconds, why).await?;
    // A downscoped token does not outlive its source.
    narrow.seconds = narrow.seconds.min(wide.seconds);
    Ok(narrow)
}

/// Requests a token. `why` converts an error response.
pub(super) async fn granted(
    client: &GuardedClient,
    address: &str,
    form: String,
    unless_told: i64,
    why: impl Fn(&Answer) -> CheckReason,
) -> Result<AccessToken, CheckReason> {
    let request = Request::post(address)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(form))
        .map_err(|_| CheckReason::Unexpected)?;
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(why(&answer));
    }
    let granted: Granted = answer.json().ok_or(CheckReason::Unexpected)?;
    let seconds = granted.expires_in.unwrap_or(unless_told);
    Ok(AccessToken { text: granted.access_token.into(), seconds })
}

/// Converts an error response.
///
/// <https://developers.google.com/identity/protocols/oauth2/service-account#jwt-error-codes>
pub(super) fn why(answer: &Answer) -> CheckReason {
    let Some(refused) = answer.json::<Refused>() else { return answer.plain_reason() };
    let says = |words: &str| refused.error_description.contains(words);
    match &*refused.error {
        "invalid_grant" if says("Signature") => CheckReason::SignatureMismatch,
        "invalid_grant" if says("iat") || says("timeframe") || says("short-lived") => CheckReason::ClockSkew,
        "invalid_grant" if says("disabled") => CheckReason::Denied,
        "invalid_grant" | "invalid_client" | "deleted_client" => CheckReason::UnknownKey,
        "access_denied"
        | "unauthorized_client"
        | "disabled_client"
        | "admin_policy_enforced"
        | "org_internal"
        | "invalid_scope" => CheckReason::Denied,
        _ => answer.plain_reason(),
    }
}
