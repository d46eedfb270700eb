//! The audit log outside the vault: its export format, its delivery and its retention.

mod retention;
mod sink;

pub(crate) use retention::{DELIVERED, WAITING, start};

use serde::Serialize;
use vault_cli::text::rfc3339;
use vault_client::AuditItem;
use vault_core::audit::{AuditChange, AuditEntry};

/// An audit entry in the format for scripts and log services.
#[derive(Serialize)]
pub(crate) struct AuditLine {
    pub(crate) id: String,
    pub(crate) at: String,
    pub(crate) organization: Option<String>,
    pub(crate) actor: String,
    pub(crate) account: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) integration: Option<String>,
    pub(crate) action: String,
    pub(crate) subject: String,
    pub(crate) count: i64,
    pub(crate) namespace: Option<String>,
    pub(crate) purpose: Option<String>,
    pub(crate) network: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) changes: Vec<AuditChange>,
    pub(crate) credentials: Vec<LineCredential>,
    /// Checkpoint that contains the entry. `None` also for an entry from the HTTP API, which does not return it.
    pub(crate) checkpoint: Option<i64>,
}

#[derive(Serialize)]
pub(crate) struct LineCredential {
    pub(crate) id: String,
    pub(crate) version: i64,
    pub(crate) form: String,
    pub(crate) expires_at: Option<String>,
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

impl AuditLine {
    /// Converts an entry that the HTTP API returned for this organization.
    pub(crate) fn of_api(entry: AuditItem, organization: &str) -> Self {
        let changes = entry.changes.into_iter();
        let credentials = entry.credentials.into_iter().map(|one| LineCredential {
            id: one.id,
            version: one.version,
            form: one.form,
            expires_at: one.expires_at,
        });
        Self {
            id: entry.id,
            at: entry.at,
            organization: Some(organization.to_owned()),
            actor: entry.actor,
            account: entry.account,
            session: entry.session,
            integration: entry.integration,
            action: entry.action,
            subject: entry.subject,
            count: entry.count,
            namespace: entry.namespace,
            purpose: entry.purpose,
            network: entry.network,
            request_id: entry.request_id,
            changes: changes.map(|one| AuditChange { field: one.field, from: one.from, to: one.to }).collect(),
            credentials: credentials.collect(),
            checkpoint: None,
        }
    }
}
