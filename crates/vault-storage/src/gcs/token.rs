//! Access tokens: of the service account, and downscoped from it.

use super::{assertion, boundary};
use crate::Places;
use crate::guard::{Answer, GuardedClient};
use crate::text::encode_pairs;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use vault_core::check::CheckReason;
use vault_core::credential::{Gcs, KeyFile, SecretText};
use vault_core::time::Timestamp;

/// Default lifetime of a token in seconds.
const LIFETIME: i64 = 3_600;

/// An access token.
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

#[derive(Deserialize)]
struct Refused {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

/// Requests a token of the service account.
pub(super) async fn ask(client: &GuardedClient, key: &KeyFile, now: Timestamp) -> Result<AccessToken, CheckReason> {
    let address = key.token_uri().ok_or(CheckReason::ForeignTokenUri)?;
    let assertion = assertion::sign(key, &address, now).ok_or(CheckReason::SignatureMismatch)?;
    let form =
        encode_pairs(&[("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &assertion)]);
    granted(client, &address, form, LIFETIME).await
}

/// Exchanges a token for one that is limited to bucket and prefix of `data` (RFC 8693).
pub(super) async fn narrow(
    client: &GuardedClient,
    places: &Places,
    data: &Gcs,
    wide: &AccessToken,
) -> Result<AccessToken, CheckReason> {
    const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
    let form = encode_pairs(&[
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("subject_token_type", ACCESS_TOKEN),
        ("requested_token_type", ACCESS_TOKEN),
        ("subject_token", wide.text.expose()), // sent for the exchange
        ("options", &boundary::of(data).to_string()),
    ]);
    let address = format!("{}/v1/token", places.google_exchange(data.service_account_key.universe_domain()));
    let mut narrow = granted(client, &address, form, wide.seconds).await?;
    // A downscoped token does not outlive its source.
    narrow.seconds = narrow.seconds.min(wide.seconds);
    Ok(narrow)
}

async fn granted(
    client: &GuardedClient,
    address: &str,
    form: String,
    unless_told: i64,
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
fn why(answer: &Answer) -> CheckReason {
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
