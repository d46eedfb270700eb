//! Transports of notifications: webhooks through the egress-restricted client, e-mail through the operator's mail
//! server.

use crate::egress;
use crate::settings::{Settings, SmtpUrl};
use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error;
use std::fs;
use std::time::Duration;
use vault_cli::failure::Failure;
use vault_cli::secret_file;
use vault_core::port::{EventCarrier, ReceiverGuard, WebhookMessage};
use vault_core::receiver::{DeliveryFailure, Mail, WebhookUrl};
use vault_storage::WebhookClient;

/// Maximum length of the mail server's password in bytes.
const LONGEST_PASSWORD: usize = 1_024;
/// Timeout of one command to the mail server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends events by the transports that the settings enable.
pub(crate) struct Carrier {
    webhooks: WebhookClient,
    mail: Option<Mailer>,
}

struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    domain: String,
}

impl Carrier {
    /// Creates the carrier from the settings.
    ///
    /// # Errors
    /// A file that the settings name cannot be used.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        let server = &settings.server;
        let webhooks = WebhookClient::new(egress::of(settings)?, server.receiver_ca_file.clone())
            .map_err(|error| Failure::new(format!("--receiver-ca-file: {error}")))?;
        let mail = match (&server.smtp_url, &server.smtp_from) {
            (Some(url), Some(from)) => Some(Mailer::of(settings, url, from)?),
            _ => None,
        };
        Ok(Self { webhooks, mail })
    }
}

impl Mailer {
    fn of(settings: &Settings, url: &SmtpUrl, from: &Mailbox) -> Result<Self, Failure> {
        // There is no network attacker on loopback, and mail servers there offer STARTTLS with certificates for other
        // host names.
        let mut tls = TlsParameters::builder(url.host.clone())
            .dangerous_accept_invalid_certs(url.is_local())
            .dangerous_accept_invalid_hostnames(url.is_local());
        if let Some(path) = &settings.server.receiver_ca_file {
            let violation =
                |cause: &dyn Error| Failure::new(format!("--receiver-ca-file: {}: {cause}", path.display()));
            let pem = fs::read(path).map_err(|error| violation(&error))?;
            tls = tls.add_root_certificate(Certificate::from_pem(&pem).map_err(|error| violation(&error))?);
        }
        let tls = tls.build_rustls().map_err(|error| Failure::new(format!("--smtp-url: {error}")))?;
        let tls = match (url.is_implicit, url.is_local()) {
            (true, _) => Tls::Wrapper(tls),
            (false, false) => Tls::Required(tls),
            (false, true) => Tls::Opportunistic(tls),
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&url.host)
            .port(url.port)
            .timeout(Some(TIMEOUT))
            .tls(tls);
        if let Some(user) = &url.user {
            let password = match &settings.server.smtp_password_file {
                Some(path) => {
                    let flag = "--smtp-password-file";
                    let bytes = secret_file::read(&settings.files, flag, path, LONGEST_PASSWORD)?;
                    let text = std::str::from_utf8(&bytes).ok().map(|text| text.trim_end_matches(['\r', '\n']));
                    text.filter(|text| !text.is_empty())
                        .ok_or_else(|| Failure::new(format!("{flag}: {} contains no password", path.display())))?
                        .to_owned()
                }
                None => return Err(Failure::usage("--smtp-url names a user, so it needs --smtp-password-file")),
            };
            transport = transport.credentials(Credentials::new(user.clone(), password));
        }
        let domain = from.email.domain().to_owned();
        Ok(Self { transport: transport.build(), from: from.clone(), domain })
    }

    async fn send(&self, to: &SecretString, id: &str, mail: &Mail) -> Result<(), DeliveryFailure> {
        let to = to.expose_secret().parse().map_err(|_| DeliveryFailure::Refused)?; // the address to send to
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(&mail.subject)
            .message_id(Some(format!("<{id}@{}>", self.domain)))
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone())
            .map_err(|_| DeliveryFailure::Refused)?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(DeliveryFailure::Refused),
            Err(error) if error.is_tls() => Err(DeliveryFailure::Tls),
            // The server responded, but does not offer the required extension.
            Err(error) if error.is_client() => Err(match error.to_string().contains("STARTTLS") {
                true => DeliveryFailure::NoStartTls,
                false => DeliveryFailure::NoLogin,
            }),
            Err(_) => Err(DeliveryFailure::Unreachable),
        }
    }
}

/// Prevents automatic replies such as out-of-office notes (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

#[async_trait]
impl EventCarrier for Carrier {
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure> {
        self.webhooks.post(message).await
    }

    async fn mail(&self, to: &SecretString, id: &str, mail: &Mail) -> Result<(), DeliveryFailure> {
        match &self.mail {
            Some(mailer) => mailer.send(to, id, mail).await,
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
