//! Access tokens of an application (OAuth 2.0 client credentials).
//!
//! <https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow>

use crate::Places;
use crate::guard::{Answer, GuardedClient};
use crate::text::{encode_name, encode_pairs, is_sendable};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use vault_core::check::CheckReason;
use vault_core::credential::{Application, AzureCloud, SecretText};

#[derive(Deserialize)]
struct Granted {
    access_token: String,
}

#[derive(Deserialize)]
struct Refused {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_codes: Vec<u32>,
}

/// Requests a token for storage from the directory of `cloud`, or from the one in the settings.
pub(super) async fn ask(
    client: &GuardedClient,
    places: &Places,
    application: Application<'_>,
    cloud: Option<AzureCloud>,
) -> Result<SecretText, CheckReason> {
    let directory = places.azure_directory.as_deref().or(cloud.map(AzureCloud::authority_host));
    let directory = directory.ok_or(CheckReason::UnknownCloud)?;
    let tenant = encode_name(application.tenant_id).ok_or(CheckReason::TenantUnknown)?;
    // Sent to the directory that issued them.
    let form = encode_pairs(&[
        ("grant_type", "client_credentials"),
        ("client_id", application.client_id.expose()),
        ("client_secret", application.client_secret.expose()),
        ("scope", AzureCloud::STORAGE_SCOPE),
    ]);
    let request = Request::post(format!("{directory}/{tenant}/oauth2/v2.0/token"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(form))
        .map_err(|_| CheckReason::TenantUnknown)?;
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(why(&answer));
    }
    let granted: Granted = answer.json().ok_or(CheckReason::Unexpected)?;
    if !is_sendable(&granted.access_token) {
        return Err(CheckReason::Unexpected);
    }
    Ok(granted.access_token.into())
}

/// Converts an error response of the directory.
///
/// Codes: <https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes>
fn why(answer: &Answer) -> CheckReason {
    let Some(refused) = answer.json::<Refused>() else { return answer.plain_reason() };
    let known = refused.error_codes.iter().find_map(|code| match code {
        90_002 | 90_013 | 900_021 | 900_023 => Some(CheckReason::TenantUnknown),
        700_016 => Some(CheckReason::UnknownKey),
        7_000_215 | 7_000_216 => Some(CheckReason::SignatureMismatch),
        7_000_222 => Some(CheckReason::SecretExpired),
        7_000_112 | 500_011 | 53_003 | 530_035 => Some(CheckReason::Denied),
        50_196 | 90_033 => Some(CheckReason::StoreTrouble),
        _ => None,
    });
    known.unwrap_or(match &*refused.error {
        "unauthorized_client" => CheckReason::UnknownKey,
        "invalid_client" => CheckReason::SignatureMismatch,
        "access_denied" => CheckReason::Denied,
        "temporarily_unavailable" | "server_error" => CheckReason::StoreTrouble,
        _ => answer.plain_reason(),
    })
}
