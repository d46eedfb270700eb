//! Access tokens of an application (OAuth 2.0 client credentials).
//!
//! <https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow>

use crate::Places;
use crate::guard::{Answer, GuardedClient};
use crate::text::{encode_name, encode_pairs, is_sendable};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
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

/// An application that requests a token.
pub(super) struct Applicant<'a> {
    /// Directory: a GUID or a domain.
    pub(super) tenant_id: &'a str,
    pub(super) client_id: &'a str,
    pub(super) proof: Proof<'a>,
}

/// What authenticates an application.
pub(super) enum Proof<'a> {
    /// Its secret.
    Secret(&'a SecretText),
    /// A federation token (RFC 7523).
    Assertion(&'a SecretString),
}

impl<'a> From<Application<'a>> for Applicant<'a> {
    fn from(application: Application<'a>) -> Self {
        let Application { tenant_id, client_id, client_secret } = application;
        // The ID is sent with the secret.
        Self { tenant_id, client_id: client_id.expose(), proof: Proof::Secret(client_secret) }
    }
}

/// Requests a token for storage from the directory of `cloud`, or from the one in the settings.
pub(super) async fn ask(
    client: &GuardedClient,
    places: &Places,
    applicant: &Applicant<'_>,
    cloud: Option<AzureCloud>,
) -> Result<SecretText, CheckReason> {
    let directory = places.azure_directory.as_deref().or(cloud.map(AzureCloud::authority_host));
    let directory = directory.ok_or(CheckReason::UnknownCloud)?;
    let tenant = encode_name(applicant.tenant_id).ok_or(CheckReason::TenantUnknown)?;
    let mut form = vec![
        ("grant_type", "client_credentials"),
        ("client_id", applicant.client_id),
        ("scope", AzureCloud::STORAGE_SCOPE),
    ];
    // Sent to the directory that issued the secret, or that is the token's audience.
    match applicant.proof {
        Proof::Secret(secret) => form.push(("client_secret", secret.expose())),
        Proof::Assertion(token) => form.extend([
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", token.expose_secret()),
        ]),
    }
    let form = encode_pairs(&form);
    let request = Request::post(format!("{directory}/{tenant}/oauth2/v2.0/token"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(form))
        .map_err(|_| CheckReason::TenantUnknown)?;
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(match applicant.proof {
            Proof::Secret(_) => why(&answer),
            Proof::Assertion(_) => why_no_trust(&answer).unwrap_or_else(|| why(&answer)),
        });
    }
    let granted: Granted = answer.json().ok_or(CheckReason::Unexpected)?;
    if !is_sendable(&granted.access_token) {
        return Err(CheckReason::Unexpected);
    }
    Ok(granted.access_token.into())
}

/// Returns the reason why the directory refuses a federation token. Only a refused subject shows that it trusts the issuer.
fn why_no_trust(answer: &Answer) -> Option<CheckReason> {
    answer.json::<Refused>()?.error_codes.iter().find_map(|code| match code {
        70_021 | 700_213 | 7_002_137 | 7_002_138 => Some(CheckReason::TrustMissing),
        7_000_272 | 90_061 | 501_661 => Some(CheckReason::IssuerUnreachable),
        700_211 | 700_212 => Some(CheckReason::IssuerNotTrusted),
        700_024 => Some(CheckReason::ClockSkew),
        _ => None,
    })
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
        50_196 | 90_033 => Some(CheckReason::StoreError),
        _ => None,
    });
    known.unwrap_or(match &*refused.error {
        "unauthorized_client" => CheckReason::UnknownKey,
        "invalid_client" => CheckReason::SignatureMismatch,
        "access_denied" => CheckReason::Denied,
        "temporarily_unavailable" | "server_error" => CheckReason::StoreError,
        _ => answer.plain_reason(),
    })
}
