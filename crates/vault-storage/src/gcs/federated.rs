//! Access tokens for a federation token: token exchange (RFC 8693), then impersonation of the service account.
//!
//! <https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token> and
//! <https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken>.

use super::token::{ACCESS_TOKEN, AccessToken, LIFETIME, Refused, granted, why};
use crate::Places;
use crate::guard::{Answer, GuardedClient};
use crate::text::{encode_pairs, encode_value, moment};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use vault_core::check::CheckReason;
use vault_core::credential::{GcsFederated, KeyFile, SecretText};
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Scope for the impersonation.
const IAM_SCOPE: &str = "https://www.googleapis.com/auth/iam";
/// Scope for all storage operations. The permissions of the service account determine what is allowed.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    access_token: String,
    expire_time: String,
}

/// Exchanges a federation token for an access token of the service account that is valid for up to `seconds`.
pub(super) async fn exchange(
    client: &GuardedClient,
    places: &Places,
    data: &GcsFederated,
    token: &SecretString,
    (now, seconds): (Timestamp, i64),
) -> Result<AccessToken, CheckReason> {
    let form = encode_pairs(&[
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("audience", &data.provider),
        ("scope", IAM_SCOPE),
        ("requested_token_type", ACCESS_TOKEN),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
        ("subject_token", token.expose_secret()), // for this recipient only
    ]);
    let address = format!("{}/v1/token", places.google_exchange(KeyFile::GOOGLE));
    let of_subject = granted(client, &address, form, LIFETIME, why_no_exchange).await?;
    impersonate(client, places, data, &of_subject.text, (now, seconds)).await
}

/// Requests a token of the service account with the token of a federated subject.
async fn impersonate(
    client: &GuardedClient,
    places: &Places,
    data: &GcsFederated,
    token: &SecretText,
    (now, seconds): (Timestamp, i64),
) -> Result<AccessToken, CheckReason> {
    let bearer = Zeroizing::new(["Bearer ", token.expose()].concat()); // sent to the cloud that issued it
    // Only `@` of an address is not unreserved, and Google's clients do not encode it.
    let account = encode_value(&data.service_account).to_string().replace("%40", "@");
    let address =
        format!("{}/v1/projects/-/serviceAccounts/{account}:generateAccessToken", places.google_impersonation);
    let request = Request::post(address)
        .header(header::AUTHORIZATION, &**bearer)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(json!({"scope": [SCOPE], "lifetime": format!("{seconds}s")}).to_string()))
        .map_err(|_| CheckReason::Unexpected)?;
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(why_no_impersonation(&answer));
    }
    let generated: Generated = answer.json().ok_or(CheckReason::Unexpected)?;
    let end = moment(&generated.expire_time).ok_or(CheckReason::Unexpected)?;
    let seconds = (end.as_seconds() - now.as_seconds()).min(seconds);
    Ok(AccessToken { text: generated.access_token.into(), seconds })
}

/// Returns the reason why the subject gets no token. Only `unauthorized_client` shows that issuer and audience are trusted:
/// a condition of the provider excludes the subject.
fn why_no_exchange(answer: &Answer) -> CheckReason {
    let Some(refused) = answer.json::<Refused>() else { return answer.plain_reason() };
    let text = refused.error_description.to_ascii_lowercase();
    // "Error connecting to the given credential's issuer."
    let is_about_keys = ["connecting", "fetch", "retriev"].iter().any(|word| text.contains(word));
    match &*refused.error {
        "unauthorized_client" => CheckReason::TrustMissing,
        "invalid_grant" if is_about_keys => CheckReason::IssuerUnreachable,
        "invalid_grant" | "invalid_target" => CheckReason::IssuerNotTrusted,
        _ => why(answer),
    }
}

/// Returns the reason why the subject may not impersonate the service account.
fn why_no_impersonation(answer: &Answer) -> CheckReason {
    match answer.status {
        // The service is not enabled in the project, so the subject was not evaluated.
        StatusCode::FORBIDDEN if answer.text().is_some_and(|text| text.contains("SERVICE_DISABLED")) => {
            CheckReason::Denied
        }
        StatusCode::FORBIDDEN => CheckReason::TrustMissing,
        _ => answer.plain_reason(),
    }
}
