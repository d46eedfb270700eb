//! Destinations of audit entries: a file, the local syslog, or an HTTP server.

use super::DELIVERED;
use crate::egress;
use crate::settings::{Settings, SinkTarget};
use async_trait::async_trait;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use vault_cli::failure::Failure;
use vault_core::audit::AuditEntry;
use vault_core::port::AuditSink;
use vault_notify::{AuditFile, AuditSyslog, LineError};
use vault_storage::ExportClient;

/// Media type of JSON Lines, as log services expect it.
const JSON_LINES: &str = "application/x-ndjson";

/// A configured sink.
#[derive(Clone)]
pub(super) enum Sink {
    File(AuditFile),
    Syslog(AuditSyslog),
    Http(ExportClient),
}

impl Sink {
    /// Creates the sink from the settings.
    ///
    /// # Errors
    /// The token is invalid, or a file of the outgoing proxy cannot be used.
    pub(super) fn of(settings: &Settings, place: &SinkTarget) -> Result<Self, Failure> {
        let token = settings.server.audit_sink_token.as_ref();
        let headers: Vec<_> = token.map(|token| ("authorization".to_owned(), bearer(token))).into_iter().collect();
        Ok(match place {
            SinkTarget::File(path) => Self::File(AuditFile::new(path)),
            SinkTarget::Syslog(path) => Self::Syslog(AuditSyslog::new(path)),
            SinkTarget::Http(url) => Self::Http(ExportClient::new(&egress::of(settings)?, url, &headers)?),
        })
    }

    async fn write(&self, lines: Vec<Vec<u8>>) -> Result<(), LineError> {
        match self {
            Self::File(file) => file.append(joined(&lines)).await,
            Self::Syslog(syslog) => syslog.send(lines).await,
            Self::Http(client) => Ok(client.post(JSON_LINES, joined(&lines).into()).await?),
        }
    }
}

/// Returns the header value with a bearer token (RFC 6750).
fn bearer(token: &SecretString) -> SecretString {
    Zeroizing::new(format!("Bearer {}", token.expose_secret())).as_str().into() // sent to the server
}

/// Joins lines, each with a line feed.
fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

#[async_trait]
impl AuditSink for Sink {
    async fn deliver(&self, entries: &[AuditEntry]) -> Result<(), LineError> {
        let lines = entries.iter().map(|entry| serde_json::to_vec(&vault_http::audit_item(entry)));
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let count = u64::try_from(lines.len()).unwrap_or_default();
        self.write(lines).await?;
        metrics::counter!(DELIVERED).increment(count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sink_targets_are_files_sockets_and_urls() {
        let read = |text: &str| text.parse::<SinkTarget>().map(|place| place.to_string()).ok();
        for (text, shown) in [
            ("file:/var/log/orgvault/audit.jsonl", "file:/var/log/orgvault/audit.jsonl"),
            ("syslog", "syslog:/dev/log"),
            ("syslog:/run/log.sock", "syslog:/run/log.sock"),
            ("https://logs.example/orgvault", "https://logs.example/orgvault"),
        ] {
            assert_eq!(read(text).as_deref(), Some(shown));
        }
        for text in [
            "",
            "file:",
            "/var/log/audit",
            "ftp://logs.example",
            "https://u:p@logs.example",
            "https://a/?k=1",
            "syslogs",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
