//! Keys of a role's session: `AssumeRole`.

use super::place::{region_of, session_address};
use super::reason;
use crate::guard::{GuardedClient, Trouble, vend_reason};
use crate::text::element;
use aws_sdk_sts::config::http::{HttpRequest, HttpResponse};
use aws_sdk_sts::config::retry::RetryConfig;
use aws_sdk_sts::config::{
    BehaviorVersion, Credentials, HttpClient, Region, RuntimeComponents, StalledStreamProtectionConfig,
};
use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::{Client, Config};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use bytes::Bytes;
use object_store::aws::AwsCredential;
use std::error::Error;
use vault_core::activation::VendReason;
use vault_core::check::CheckReason;
use vault_core::credential::{S3, SecretText};
use vault_core::port::VendOrder;
use vault_core::time::Timestamp;

/// The shortest session that there is, in seconds.
pub(super) const SHORTEST: i32 = 900;
/// The longest session that there is, in seconds; most roles allow less.
const LONGEST: i32 = 43_200;

/// The session that is wanted.
pub(super) struct Wanted<'a> {
    /// The role.
    pub(super) role: &'a str,
    /// The session's name, for the store's own records.
    pub(super) name: &'a str,
    /// Its lifetime.
    pub(super) seconds: i32,
    /// What it is narrowed to.
    pub(super) policy: Option<String>,
}

/// How long a session for `order` lasts: as long as asked for, within what there is.
pub(super) fn seconds_until(order: &VendOrder) -> i32 {
    let seconds = order.expires_at.as_seconds() - order.now.as_seconds();
    i32::try_from(seconds).unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
}

/// A session's keys.
pub(super) struct Session {
    pub(super) access_key_id: SecretText,
    pub(super) secret_access_key: SecretText,
    pub(super) session_token: SecretText,
    pub(super) expires_at: Timestamp,
}

impl Session {
    /// The keys to sign with.
    pub(super) fn into_keys(self) -> AwsCredential {
        AwsCredential {
            key_id: self.access_key_id.expose().to_owned(),
            secret_key: self.secret_access_key.expose().to_owned(),
            token: Some(self.session_token.expose().to_owned()),
        }
    }
}

/// Why there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: CheckReason,
    /// Whether it is the lifetime that the store does not like.
    of_lifetime: bool,
}

impl Refusal {
    pub(super) const fn for_vendor(self) -> VendReason {
        if self.of_lifetime { VendReason::Lifetime } else { vend_reason(self.reason) }
    }
}

impl From<CheckReason> for Refusal {
    fn from(reason: CheckReason) -> Self {
        Self { reason, of_lifetime: false }
    }
}

/// Takes the role on with the saved keys.
pub(super) async fn take_on(client: &GuardedClient, data: &S3, wanted: Wanted<'_>) -> Result<Session, Refusal> {
    // To sign with; the SDK keeps what it is given in text that is wiped.
    let keys = Credentials::new(
        data.access_key_id.expose(),
        data.secret_access_key.expose(),
        data.session_token.as_ref().map(|token| token.expose().to_owned()),
        None,
        "saved",
    );
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(keys)
        .region(Region::new(region_of(data).to_owned()))
        .endpoint_url(session_address(data))
        .retry_config(RetryConfig::disabled())
        // The SDK would give up on a slow store before our own deadline, and not say why.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .http_client(Adapter(client.clone()))
        .build();
    let outcome = Client::from_conf(config)
        .assume_role()
        .role_arn(wanted.role)
        .role_session_name(wanted.name)
        .duration_seconds(wanted.seconds)
        .set_policy(wanted.policy)
        .set_external_id(data.external_id.as_ref().map(|id| id.expose().to_owned())) // The role asks for it.
        .send()
        .await;
    let keys = outcome.map_err(|error| refusal(&error))?.credentials;
    let keys = keys.ok_or(CheckReason::UnexpectedAnswer)?;
    Ok(Session {
        access_key_id: keys.access_key_id.into(),
        secret_access_key: keys.secret_access_key.into(),
        session_token: keys.session_token.into(),
        expires_at: Timestamp::from_millis(keys.expiration.secs().saturating_mul(1000)),
    })
}

fn refusal<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E, HttpResponse>) -> Refusal {
    if let Some(trouble) = trouble_in(error) {
        return CheckReason::from(trouble).into();
    }
    // Where the answer is not shaped as Amazon's, the SDK finds no code in it.
    let body = error.raw_response().and_then(|answer| std::str::from_utf8(answer.body().bytes()?).ok());
    let stated = body.and_then(|body| element(body, "Code"));
    let code = error.meta().code().or(stated.as_deref());
    // "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
    let of_lifetime = code == Some("ValidationError")
        && error.meta().message().is_some_and(|message| message.contains("DurationSeconds"));
    let status = error.raw_response().map_or(0, |answer| answer.status().as_u16());
    let reason = code.and_then(reason::of_code).unwrap_or(match status {
        300..=399 => CheckReason::Redirected,
        401 | 403 => CheckReason::Denied,
        408 | 429 | 500..=599 => CheckReason::StoreTrouble,
        _ => CheckReason::UnexpectedAnswer,
    });
    Refusal { reason, of_lifetime }
}

/// What our client said, however deep the SDK has wrapped it.
fn trouble_in<E: Error + 'static>(error: &SdkError<E, HttpResponse>) -> Option<Trouble> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(trouble) = error.downcast_ref::<Trouble>() {
            return Some(*trouble);
        }
        cause = error.source();
    }
    None
}

/// Our client under the SDK.
#[derive(Clone, Debug)]
struct Adapter(GuardedClient);

impl HttpClient for Adapter {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Adapter {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            // All that is asked of this service are small forms.
            let request = request.map(|body| Bytes::copy_from_slice(body.bytes().unwrap_or_default()));
            let answer = client.send(request).await.map_err(|trouble| ConnectorError::other(trouble.into(), None))?;
            let status = StatusCode::try_from(answer.status.as_u16())
                .map_err(|error| ConnectorError::other(error.into(), None))?;
            let mut response = HttpResponse::new(status, answer.body.to_vec().into());
            for (name, value) in &answer.headers {
                if let Ok(value) = value.to_str() {
                    response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
                }
            }
            Ok(response)
        })
    }
}
