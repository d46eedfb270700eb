//! Ports for receivers: delivery of notifications.

use crate::receiver::{DeliveryFailure, EventDelivery, WebhookUrl};
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;

/// A webhook message. It does not implement `Debug`, because its URL may be a secret.
pub struct WebhookMessage {
    /// Target URL.
    pub url: SecretString,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub at: Timestamp,
    /// Signing secrets, each for a signature in `webhook-signature`.
    pub secrets: Vec<SecretString>,
    /// Body in JSON.
    pub body: String,
}

/// Port that sends events to receivers.
#[async_trait]
pub trait EventCarrier: Send + Sync {
    /// Posts a message.
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure>;

    /// Sends a mail about these events. A repeated mail has the same `id`.
    async fn mail(&self, to: &SecretString, id: &str, events: &[EventDelivery]) -> Result<(), DeliveryFailure>;
}

/// Port that checks permitted addresses before receivers are added.
pub trait ReceiverGuard: Send + Sync {
    /// Returns whether this server would connect to the URL. Checks only the URL itself, without resolving names.
    fn permits(&self, url: &WebhookUrl) -> bool;

    /// Returns whether this server sends mail.
    fn sends_mail(&self) -> bool;
}
