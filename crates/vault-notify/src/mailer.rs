//! Mail to receivers, through the operator's mail server (RFC 5321).

use crate::mail_text::compose;
use crate::smtp_url::SmtpUrl;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error;
use std::fmt;
use std::time::Duration;
use vault_core::receiver::{DeliveryFailure, EventDelivery};

/// Timeout of one command to the mail server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of a [`Mailer`].
#[derive(Debug)]
pub struct MailSettings {
    /// The mail server.
    pub server: SmtpUrl,
    /// Sender of all mails.
    pub from: Mailbox,
    /// Password of the server's user.
    pub password: Option<SecretString>,
    /// Certificate authority to trust besides those of the system (PEM).
    pub ca: Option<Vec<u8>>,
    /// Address of the console, for a link in each mail.
    pub console: Option<String>,
}

/// The reason why a [`Mailer`] was not created.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The URL names a user, but there is no password.
    #[error("the mail server's URL names a user, but there is no password")]
    NoPassword,
    /// The certificate authority cannot be used.
    #[error("{0}")]
    Ca(#[source] lettre::transport::smtp::Error),
    /// The host name cannot be used for TLS.
    #[error("{0}")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// Sends mail about events.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    console: Option<String>,
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailer").field("from", &self.from).finish_non_exhaustive() // the transport has the password
    }
}

impl Mailer {
    /// Creates a mailer. It connects when it sends.
    ///
    /// # Errors
    /// [`MailError`].
    pub fn new(settings: MailSettings) -> Result<Self, MailError> {
        let MailSettings { server, from, password, ca, console } = settings;
        // There is no network attacker on loopback, and mail servers there offer STARTTLS with certificates for other
        // host names.
        let mut tls = TlsParameters::builder(server.host.clone())
            .dangerous_accept_invalid_certs(server.is_local())
            .dangerous_accept_invalid_hostnames(server.is_local());
        if let Some(pem) = ca {
            tls = tls.add_root_certificate(Certificate::from_pem(&pem).map_err(MailError::Ca)?);
        }
        let tls = tls.build_rustls().map_err(MailError::Tls)?;
        let tls = match (server.is_implicit, server.is_local()) {
            (true, _) => Tls::Wrapper(tls),
            (false, false) => Tls::Required(tls),
            (false, true) => Tls::Opportunistic(tls),
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host)
            .port(server.port)
            .timeout(Some(TIMEOUT))
            .tls(tls);
        if let Some(user) = server.user {
            let password = password.ok_or(MailError::NoPassword)?;
            let password = password.expose_secret().to_owned(); // the library keeps it to log in
            transport = transport.credentials(Credentials::new(user, password));
        }
        Ok(Self { transport: transport.build(), from, console })
    }

    /// Sends a mail about `deliveries` to the address `to`. A repeated mail has the same `id`.
    ///
    /// # Errors
    /// The reason in the terms of deliveries.
    pub async fn send(&self, to: &SecretString, id: &str, deliveries: &[EventDelivery]) -> Result<(), DeliveryFailure> {
        let to = to.expose_secret().parse().map_err(|_| DeliveryFailure::Refused)?; // the address to send to
        let (subject, text) = compose(deliveries, self.console.as_deref());
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(subject)
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(text)
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
