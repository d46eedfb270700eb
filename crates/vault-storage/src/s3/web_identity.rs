//! Session keys for a federation token: a single `AssumeRoleWithWebIdentity` request
//! (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html>), which is not signed.

use super::session::{Assumed, Parameters, Session, why as why_no_session};
use crate::guard::{Answer, GuardedClient};
use crate::text::{address, encode_pairs};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use vault_core::check::CheckReason;

#[derive(Deserialize)]
enum AssumeRole {
    #[serde(rename_all = "PascalCase")]
    AssumeRoleWithWebIdentityResponse { assume_role_with_web_identity_result: Assumed },
}

/// Requests a session of `role` with `token` from the service at `recipient`.
pub(super) async fn assume_role(
    client: &GuardedClient,
    role: &str,
    recipient: &str,
    parameters: &Parameters,
    token: &SecretString,
) -> Result<Session, CheckReason> {
    let mut form = parameters.form("AssumeRoleWithWebIdentity", Some(role));
    form.push(("WebIdentityToken", token.expose_secret())); // for this recipient only
    let request = Request::post(address(recipient).ok_or(CheckReason::Unexpected)?)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Bytes::from(encode_pairs(&form)))
        .map_err(|_| CheckReason::Unexpected)?;
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(why(&answer));
    }
    let AssumeRole::AssumeRoleWithWebIdentityResponse { assume_role_with_web_identity_result } =
        answer.xml().ok_or(CheckReason::Unexpected)?;
    assume_role_with_web_identity_result.session().ok_or(CheckReason::Unexpected)
}

/// Returns the reason of a refusal. Only `AccessDenied` shows that issuer and audience are trusted, and the subject is
/// not.
fn why(answer: &Answer) -> CheckReason {
    let stated = answer.stated();
    match &*stated.code {
        "AccessDenied" => CheckReason::TrustMissing,
        // "Couldn't retrieve verification key from your identity provider, …"
        "InvalidIdentityToken" if stated.message.contains("verification key") => CheckReason::IssuerUnreachable,
        "IDPCommunicationError" => CheckReason::IssuerUnreachable,
        "InvalidIdentityToken" => CheckReason::IssuerNotTrusted,
        // A new token is valid for five minutes.
        "ExpiredTokenException" => CheckReason::ClockSkew,
        _ => why_no_session(answer),
    }
}
