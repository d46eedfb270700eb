//! Webhooks of receivers (Standard Webhooks 1.0): one signed POST, to addresses that the egress policy permits.

use crate::guard::{GuardedClient, Resolve, SystemResolver, TrustError};
use crate::{EgressPolicy, StorageSettings};
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use secrecy::ExposeSecret as _;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use vault_core::check::CheckReason;
use vault_core::port::WebhookMessage;
use vault_core::receiver::{DeliveryFailure, WebhookUrl};

/// Posts to webhooks.
#[derive(Clone)]
pub struct WebhookClient {
    client: GuardedClient,
    egress: EgressPolicy,
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookClient")
    }
}

impl WebhookClient {
    /// A client that connects to public addresses and to those that `egress` allows. Certificates of `ca_file` are believed
    /// too.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn new(egress: EgressPolicy, ca_file: Option<PathBuf>) -> Result<Self, TrustError> {
        Self::resolving(egress, ca_file, Arc::new(SystemResolver::new()))
    }

    /// The same, with other addresses for host names.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn resolving(
        egress: EgressPolicy,
        ca_file: Option<PathBuf>,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, TrustError> {
        let settings = StorageSettings { egress: egress.clone(), ca_file, ..StorageSettings::default() };
        Ok(Self { client: GuardedClient::new(&settings, resolver)?, egress })
    }

    /// Whether the URL may be connected to, as far as that is seen without resolving its host.
    pub fn permits(&self, url: &WebhookUrl) -> bool {
        url.address().is_none_or(|address| self.egress.permits(address))
    }

    /// Posts a message. What the receiver answers is not kept.
    ///
    /// # Errors
    /// Why it was not accepted, in fixed words.
    pub async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure> {
        let url = message.url.expose_secret(); // where to send it
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "OrgVault")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", message.at.as_seconds())
            .header("webhook-signature", &message.signature)
            .body(Bytes::from(message.body.clone()));
        let request = request.map_err(|_| DeliveryFailure::Damaged)?;
        let answer = self.client.send(request).await.map_err(|reason| match reason {
            CheckReason::Dns => DeliveryFailure::Dns,
            CheckReason::Tls => DeliveryFailure::Tls,
            CheckReason::BlockedEgress => DeliveryFailure::Blocked,
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
