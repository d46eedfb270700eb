//! The audit log outside the vault: its export format, its delivery and its retention.

mod retention;
mod sink;

pub(crate) use retention::{DELIVERED, WAITING, start};
pub(crate) use sink::SinkPlace;

use crate::text::rfc3339;
use serde::Serialize;
use vault_core::audit::{AuditChange, AuditEntry};

/// An audit entry in the format for scripts and log services.
#[derive(Serialize)]
pub(crate) struct AuditLine {
    id: String,
    at: String,
    organization: Option<String>,
    actor: String,
    account: Option<String>,
    session: Option<String>,
    integration: Option<String>,
    action: String,
    subject: String,
    count: i64,
    namespace: Option<String>,
    purpose: Option<String>,
    network: Option<String>,
    request_id: Option<String>,
    changes: Vec<AuditChange>,
    credentials: Vec<LineCredential>,
    /// Checkpoint that contains the entry.
    checkpoint: Option<i64>,
}

#[derive(Serialize)]
struct LineCredential {
    id: String,
    version: i64,
    form: String,
    expires_at: Option<String>,
}

impl From<AuditEntry> for AuditLine {
    fn from(entry: AuditEntry) -> Self {
        let credentials = entry.credentials().into_iter().map(|one| LineCredential {
            id: one.id,
            version: one.version,
            form: one.form,
            expires_at: one.expires_at.map(rfc3339),
        });
        Self {
            credentials: credentials.collect(),
            subject: entry.subject().into_owned(),
            changes: entry.changes(),
            at: rfc3339(entry.at),
            id: entry.id,
            organization: entry.organization,
            actor: entry.actor,
            account: entry.account,
            session: entry.session,
            integration: entry.integration,
            action: entry.action,
            count: entry.count,
            namespace: entry.namespace,
            purpose: entry.purpose,
            network: entry.network,
            request_id: entry.request,
            checkpoint: entry.checkpoint,
        }
    }
}
