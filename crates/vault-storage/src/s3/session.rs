//! Session keys: a single `AssumeRole` request
//! (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>). Amazon's crate for it would add a tenth
//! to the size of the program.

use super::{policy, reason, signable};
use crate::guard::{Answer, GuardedClient};
use crate::text::{address, encode_pairs, moment};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use vault_core::check::CheckReason;
use vault_core::credential::{S3, S3Location, SecretText};
use vault_core::port::VendOrder;
use vault_core::time::Timestamp;

/// Minimum lifetime of a session in seconds.
const SHORTEST: i32 = 900;
/// Maximum lifetime of a session in seconds. Most roles allow less.
const LONGEST: i32 = 43_200;

/// Name of the session of a check. Providers record it.
const CHECK: &str = "orgvault-check";
/// Name of the session that a trust check requests.
const TRUST_CHECK: &str = "orgvault-trust-check";

/// The parameters of a session.
pub(crate) struct Parameters {
    /// Name of the session in the provider's logs.
    name: String,
    /// Lifetime in seconds.
    seconds: String,
    /// Session policy.
    policy: String,
}

impl Parameters {
    /// Returns the parameters for `order`, limited to the bucket and prefix.
    pub(super) fn of(location: &S3Location<'_>, order: &VendOrder) -> Result<Self, CheckReason> {
        let name = order.activation.map_or_else(|| CHECK.to_owned(), |activation| format!("orgvault-{activation}"));
        let (seconds, policy) = (seconds_until(order).to_string(), policy::narrowed_to(location)?);
        Ok(Self { name, seconds, policy })
    }

    /// Returns the parameters for a session that must be refused.
    pub(super) fn of_trust_check(location: &S3Location<'_>) -> Result<Self, CheckReason> {
        let policy = policy::narrowed_to(location)?;
        Ok(Self { name: TRUST_CHECK.to_owned(), seconds: SHORTEST.to_string(), policy })
    }

    /// Returns the fields of the request, in the order of the documentation.
    pub(super) fn form<'a>(&'a self, action: &'a str, role: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let mut form = vec![
            ("Action", action),
            ("Version", "2011-06-15"),
            ("RoleSessionName", self.name.as_str()),
            ("DurationSeconds", self.seconds.as_str()),
        ];
        form.push(("Policy", &self.policy));
        form.extend(role.map(|role| ("RoleArn", role)));
        form
    }
}

/// Returns tags that identify the user of the session
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html>).
pub(super) fn tags(order: &VendOrder) -> Vec<(&'static str, String)> {
    let integration = order.integration.map(|integration| ("orgvault:integration", integration.to_string()));
    let tags = [
        ("orgvault:organization", order.organization.to_string()),
        ("orgvault:namespace", order.namespace.as_str().to_owned()),
    ];
    tags.into_iter().chain(integration).collect()
}

/// Returns the lifetime of a session for `order`, limited to the valid range.
fn seconds_until(order: &VendOrder) -> i32 {
    let seconds = order.expires_at.as_seconds() - order.now.as_seconds();
    i32::try_from(seconds).unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
}

/// The keys of a session.
pub(crate) struct Session {
    pub(crate) access_key_id: SecretText,
    pub(crate) secret_access_key: SecretText,
    pub(crate) session_token: SecretText,
    pub(super) expires_at: Timestamp,
}

/// Requests a session with the saved keys.
pub(super) async fn assume_role(
    client: &GuardedClient,
    data: &S3,
    parameters: &Parameters,
    tags: &[(&'static str, String)],
) -> Result<Session, CheckReason> {
    let token = data.session_token.as_ref().map(|token| token.expose());
    let location = data.location();
    let region = location.signing_region();
    signable(data.access_key_id.expose(), token, &region)?;
    let address = address(&location.sts_address()).ok_or(CheckReason::Unexpected)?;
    let mut form = parameters.form("AssumeRole", location.role_arn);
    let tags: Vec<_> = (1..)
        .zip(tags)
        .map(|(place, tag)| (format!("Tags.member.{place}.Key"), format!("Tags.member.{place}.Value"), tag))
        .collect();
    form.extend(
        tags.iter().flat_map(|(key, value, (name, text))| [(key.as_str(), *name), (value.as_str(), text.as_str())]),
    );
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
    let AssumeRole::AssumeRoleResponse { assume_role_result } = answer.xml().ok_or(CheckReason::Unexpected)?;
    assume_role_result.session().ok_or(CheckReason::Unexpected)
}

#[derive(Deserialize)]
enum AssumeRole {
    #[serde(rename_all = "PascalCase")]
    AssumeRoleResponse { assume_role_result: Assumed },
}

/// Result of a request for a session.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Assumed {
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

impl Assumed {
    /// Returns the keys of the session, if they are complete.
    pub(super) fn session(self) -> Option<Session> {
        let Self { credentials } = self;
        let secret = |text: String| (!text.is_empty()).then(|| SecretText::from(text));
        Some(Session {
            access_key_id: secret(credentials.access_key_id)?,
            secret_access_key: secret(credentials.secret_access_key)?,
            session_token: secret(credentials.session_token)?,
            expires_at: moment(&credentials.expiration)?,
        })
    }
}

/// Returns the reason of an unsuccessful response.
pub(super) fn why(answer: &Answer) -> CheckReason {
    let stated = answer.stated();
    // "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
    if stated.code == "ValidationError" && stated.message.contains("DurationSeconds") {
        return CheckReason::Lifetime;
    }
    reason::of_code(&stated.code).unwrap_or_else(|| answer.plain_reason())
}
