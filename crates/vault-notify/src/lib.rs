//! Destinations of what a vault reports: mail to receivers, and audit entries in a file or the local syslog.
//!
//! [`Mailer`] sends mail for an [`EventCarrier`](vault_core::port::EventCarrier). [`AuditFile`] and [`AuditSyslog`] write
//! lines for an [`AuditSink`](vault_core::port::AuditSink). Webhooks and audit entries over HTTP are in `vault-storage`,
//! which has the guarded HTTP client.
//!
//! ```
//! let server: vault_notify::SmtpUrl = "smtps://vault@mail.example".parse()?;
//! assert_eq!((server.port, server.user.as_deref()), (465, Some("vault")));
//! # Ok::<(), String>(())
//! ```

mod audit_file;
mod audit_syslog;
mod mail_text;
mod mailer;
mod smtp_url;

pub use audit_file::AuditFile;
pub use audit_syslog::AuditSyslog;
pub use lettre::message::Mailbox;
pub use mailer::{MailError, MailSettings, Mailer};
pub use smtp_url::SmtpUrl;

/// The reason why a line was not written.
pub type LineError = Box<dyn std::error::Error + Send + Sync>;
