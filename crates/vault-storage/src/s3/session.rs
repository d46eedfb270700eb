//! Session keys: a single `AssumeRole` request
//! (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>). Amazon's crate for it would add a tenth
//! to the size of the program.

use super::place::{region_of, session_address};
use super::{reason, signable};
use crate::guard::{Answer, GuardedClient};
use crate::text::{address, encode_pairs, moment};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use vault_core::check::CheckReason;
use vault_core::credential::{S3, SecretText};
use vault_core::port::VendOrder;
use vault_core::time::Timestamp;

/// Minimum lifetime of a session in seconds.
pub(super) const SHORTEST: i32 = 900;
/// Maximum lifetime of a session in seconds. Most roles allow less.
const LONGEST: i32 = 43_200;

/// The parameters of a session.
pub(super) struct Wanted<'a> {
    /// Role to assume. `None` for a provider that issues sessions without a role.
    pub(super) role: Option<&'a str>,
    /// Name of the session in the provider's logs.
    pub(super) name: &'a str,
    /// Lifetime in seconds.
    pub(super) seconds: i32,
    /// Session policy.
    pub(super) policy: Option<String>,
    /// Session tags for the provider's logs and policies.
    pub(super) tags: Vec<(&'static str, String)>,
}

/// Returns tags that identify the user of the session
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html>).
pub(super) fn tags(order: &VendOrder) -> Vec<(&'static str, String)> {
    vec![
        ("orgvault:organization", order.organization.to_string()),
        ("orgvault:namespace", order.namespace.as_str().to_owned()),
        ("orgvault:integration", order.integration.to_string()),
    ]
}

/// Returns the lifetime of a session for `order`, limited to the valid range.
pub(super) fn seconds_until(order: &VendOrder) -> i32 {
    let seconds = order.expires_at.as_seconds() - order.now.as_seconds();
    i32::try_from(seconds).unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
}

/// The keys of a session.
pub(super) struct Session {
    pub(super) access_key_id: SecretText,
    pub(super) secret_access_key: SecretText,
    pub(super) session_token: SecretText,
    pub(super) expires_at: Timestamp,
}

/// Requests a session with the saved keys.
pub(super) async fn take_on(client: &GuardedClient, data: &S3, wanted: Wanted<'_>) -> Result<Session, CheckReason> {
    let token = data.session_token.as_ref().map(|token| token.expose());
    let region = region_of(data);
    signable(data.access_key_id.expose(), token, &region)?;
    let address = address(&session_address(data)).ok_or(CheckReason::Unexpected)?;
    let seconds = wanted.seconds.to_string();
    let mut form = vec![
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleSessionName", wanted.name),
        ("DurationSeconds", &seconds),
    ];
    form.extend(wanted.role.map(|role| ("RoleArn", role)));
    let tags: Vec<_> = (1..)
        .zip(&wanted.tags)
        .map(|(place, tag)| (format!("Tags.member.{place}.Key"), format!("Tags.member.{place}.Value"), tag))
        .collect();
    form.extend(
        tags.iter().flat_map(|(key, value, (name, text))| [(key.as_str(), *name), (value.as_str(), text.as_str())]),
    );
    form.extend(wanted.policy.as_deref().map(|policy| ("Policy", policy)));
    form.extend(data.external_id.as_ref().map(|id| ("ExternalId", id.expose()))); // required by the role
    let mut request = Request::post(address)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(HttpRequestBody::from(Bytes::from(encode_pairs(&form))))
        .map_err(|_| CheckReason::Unexpected)?;
    // Used for signing.
    let keys = AwsCredential {
        key_id: data.access_key_id.expose().to_owned(),
        secret_key: data.secret_access_key.expose().to_owned(),
        token: token.map(str::to_owned),
    };
    AwsAuthorizer::new(&keys, "sts", &region).try_authorize(&mut request, None).map_err(|_| CheckReason::Unexpected)?;
    let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
    let answer = client.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(why(&answer));
    }
    read(&answer).ok_or(CheckReason::Unexpected)
}

#[derive(Deserialize)]
enum AssumeRole {
    #[serde(rename_all = "PascalCase")]
    AssumeRoleResponse { assume_role_result: Assumed },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    credentials: Keys,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Keys {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

/// Parses the keys in a response.
fn read(answer: &Answer) -> Option<Session> {
    let AssumeRole::AssumeRoleResponse { assume_role_result: Assumed { credentials } } = answer.xml()?;
    let secret = |text: String| (!text.is_empty()).then(|| SecretText::from(text));
    Some(Session {
        access_key_id: secret(credentials.access_key_id)?,
        secret_access_key: secret(credentials.secret_access_key)?,
        session_token: secret(credentials.session_token)?,
        expires_at: moment(&credentials.expiration)?,
    })
}

fn why(answer: &Answer) -> CheckReason {
    let stated = answer.stated();
    // "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
    if stated.code == "ValidationError" && stated.message.contains("DurationSeconds") {
        return CheckReason::Lifetime;
    }
    reason::of_code(&stated.code).unwrap_or_else(|| answer.plain_reason())
}
