//! Webhooks of receivers (Standard Webhooks 1.0): one signed POST to an address that the egress policy permits.

use crate::guard::{GuardedClient, Resolve, SystemResolver, TrustError};
use crate::{Egress, StorageSettings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::{Request, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use vault_core::check::CheckReason;
use vault_core::port::WebhookMessage;
use vault_core::receiver::{DeliveryFailure, SECRET_PREFIX, WebhookUrl};
use zeroize::Zeroizing;

/// A client for webhooks.
#[derive(Clone)]
pub struct WebhookClient {
    client: GuardedClient,
    egress: Egress,
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookClient")
    }
}

impl WebhookClient {
    /// Creates a client for the destinations that `egress` permits.
    ///
    /// # Errors
    /// [`TrustError::Tls`].
    pub fn new(egress: Egress) -> Result<Self, TrustError> {
        Self::resolving(egress, Arc::new(SystemResolver::new()))
    }

    /// Same as [`WebhookClient::new`], with another resolver.
    ///
    /// # Errors
    /// [`TrustError::Tls`].
    pub fn resolving(egress: Egress, resolver: Arc<dyn Resolve>) -> Result<Self, TrustError> {
        let settings = StorageSettings { egress: egress.clone(), ..StorageSettings::default() };
        Ok(Self { client: GuardedClient::new(&settings, resolver)?, egress })
    }

    /// Returns whether connections to the URL may be permitted. The addresses of a direct host name are checked only
    /// when it is resolved.
    pub fn permits(&self, url: &WebhookUrl) -> bool {
        self.egress.may_permit(url.host(), url.port())
    }

    /// Sends a message. The body of the response is discarded.
    ///
    /// # Errors
    /// The reason why the receiver did not accept the message.
    pub async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure> {
        let url = message.url.expose_secret(); // the address to send to
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "OrgVault")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", message.at.as_seconds())
            .header("webhook-signature", signatures(message))
            .body(Bytes::from(message.body.clone()));
        let request = request.map_err(|_| DeliveryFailure::Damaged)?;
        let answer = self.client.send(request).await.map_err(|reason| match reason {
            CheckReason::Dns => DeliveryFailure::Dns,
            CheckReason::Tls => DeliveryFailure::Tls,
            CheckReason::BlockedEgress => DeliveryFailure::Blocked,
            CheckReason::ProxyUnreachable | CheckReason::ProxyCredentials | CheckReason::ProxyRefused => {
                DeliveryFailure::Proxy
            }
            CheckReason::Unreachable => DeliveryFailure::Unreachable,
            _ => DeliveryFailure::Refused,
        })?;
        match answer.status {
            status if status.is_success() => Ok(()),
            StatusCode::GONE => Err(DeliveryFailure::Gone),
            status if status.is_redirection() => Err(DeliveryFailure::Redirected),
            _ => Err(DeliveryFailure::Refused),
        }
    }
}

/// Returns a signature with each secret, separated by spaces.
fn signatures(message: &WebhookMessage) -> String {
    let signed = format!("{}.{}.{}", message.id, message.at.as_seconds(), message.body);
    let signatures: Vec<_> = message.secrets.iter().filter_map(|secret| signature(secret, &signed)).collect();
    signatures.join(" ")
}

/// Returns `v1,` and the base64 of HMAC-SHA-256. `None` if the secret is not base64.
fn signature(secret: &SecretString, signed: &str) -> Option<String> {
    let text = secret.expose_secret(); // the key of the MAC
    let key = STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).map(Zeroizing::new).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(signed.as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_core::time::Timestamp;

    /// Example from the libraries of the specification.
    #[test]
    fn signatures_match_standard_webhooks() {
        let message = WebhookMessage {
            url: "https://hooks.example".into(),
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            at: Timestamp::from_millis(1_614_265_330_000),
            body: r#"{"test": 2432232314}"#.to_owned(),
            secrets: vec!["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(); 2],
        };
        let one = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signatures(&message), format!("{one} {one}"));
    }
}
