//! The token of an application: OAuth 2.0, client credentials.
//!
//! <https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow>

use crate::Places;
use crate::guard::{Answer, GuardedClient};
use crate::text::{encode_name, encode_pairs, is_sendable};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use serde::Deserialize;
use url::Url;
use vault_core::check::CheckReason;
use vault_core::credential::{AzureIdentity, SecretText};

/// What the token is for, in every cloud.
const SCOPE: &str = "https://storage.azure.com/.default";

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

/// Asks the directory for a token for the storage account at `address`.
pub(super) async fn ask(
    client: &GuardedClient,
    places: &Places,
    data: &AzureIdentity,
    address: &str,
) -> Result<SecretText, CheckReason> {
    let directory = places.azure_directory.as_deref().unwrap_or_else(|| directory_of(address));
    let tenant = encode_name(&data.tenant_id).ok_or(CheckReason::TenantUnknown)?;
    // Shown to the directory that issued them.
    let form = encode_pairs(&[
        ("grant_type", "client_credentials"),
        ("client_id", data.client_id.expose()),
        ("client_secret", data.client_secret.expose()),
        ("scope", SCOPE),
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

/// The directory of the cloud that the account lies in.
fn directory_of(address: &str) -> &'static str {
    use object_store::azure::authority_hosts::{AZURE_CHINA, AZURE_GOVERNMENT, AZURE_PUBLIC_CLOUD};
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    match () {
        () if host.ends_with(".chinacloudapi.cn") => AZURE_CHINA,
        () if host.ends_with(".usgovcloudapi.net") => AZURE_GOVERNMENT,
        () => AZURE_PUBLIC_CLOUD,
    }
}

/// What the directory's refusal means.
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
