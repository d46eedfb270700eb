//! Transports of notifications: webhooks through the egress-restricted client, e-mail through the operator's mail
//! server.

use crate::egress;
use crate::settings::Settings;
use async_trait::async_trait;
use secrecy::SecretString;
use std::fs;
use vault_cli::failure::Failure;
use vault_core::port::{EventCarrier, ReceiverGuard, WebhookMessage};
use vault_core::receiver::{DeliveryFailure, EventDelivery, WebhookUrl};
use vault_notify::{MailError, MailSettings, Mailbox, Mailer, SmtpUrl};
use vault_storage::WebhookClient;

/// Sends events by the transports that the settings enable.
pub(crate) struct Carrier {
    webhooks: WebhookClient,
    mail: Option<Mailer>,
}

impl Carrier {
    /// Creates the carrier from the settings.
    ///
    /// # Errors
    /// A file that the settings name cannot be used.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        let server = &settings.server;
        let webhooks = WebhookClient::new(egress::of(settings)?)?;
        let mail = match (&server.smtp_url, &server.smtp_from) {
            (Some(url), Some(from)) => Some(mailer(settings, url, from)?),
            _ => None,
        };
        Ok(Self { webhooks, mail })
    }
}

fn mailer(settings: &Settings, url: &SmtpUrl, from: &Mailbox) -> Result<Mailer, Failure> {
    let server = &settings.server;
    let ca_file = server.ca_file.as_deref();
    let of_ca = |error: &dyn std::error::Error| {
        let path = ca_file.unwrap_or_else(|| "".as_ref()).display();
        Failure::new(format!("--ca-file: {path}: {error}"))
    };
    let mail = MailSettings {
        server: url.clone(),
        from: from.clone(),
        password: server.smtp_password.clone(),
        ca: ca_file.map(fs::read).transpose().map_err(|error| of_ca(&error))?,
        console: Some(server.console_url(server.listen)),
    };
    Mailer::new(mail).map_err(|error| match &error {
        MailError::NoPassword => Failure::usage("--smtp-url names a user, so it needs smtp-password"),
        MailError::Ca(cause) => of_ca(cause),
        MailError::Tls(_) => Failure::new(format!("--smtp-url: {error}")),
    })
}

#[async_trait]
impl EventCarrier for Carrier {
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure> {
        self.webhooks.post(message).await
    }

    async fn mail(&self, to: &SecretString, id: &str, events: &[EventDelivery]) -> Result<(), DeliveryFailure> {
        match &self.mail {
            Some(mailer) => mailer.send(to, id, events).await,
            None => Err(DeliveryFailure::NoMail),
        }
    }
}

impl ReceiverGuard for Carrier {
    fn permits(&self, url: &WebhookUrl) -> bool {
        self.webhooks.permits(url)
    }

    fn sends_mail(&self) -> bool {
        self.mail.is_some()
    }
}
