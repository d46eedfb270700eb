//! Rows as they are stored, for integrity checks.

use super::rows::{MemoryRows, done};
use super::{Defect, audit};
use vault_core::audit::{AuditEntry, RecordedRow};
use vault_core::entity::OF_INSTANCE;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{InspectionRows, RecordedStates, RecordedSubject, Reply, RowKey, StoredRowKey, WholeCredential};

fn page<T: Ord>(rows: impl Iterator<Item = T>, after: Option<&T>, limit: usize) -> Vec<T> {
    let mut rows: Vec<_> = rows.filter(|row| after.is_none_or(|after| row > after)).collect();
    rows.sort_unstable();
    rows.truncate(limit);
    rows
}

impl MemoryRows<'_> {
    /// Returns the newest entries that contain the state of a row, newest first.
    pub(super) fn entries_about(&self, query: &RecordedStates) -> Vec<AuditEntry> {
        let RecordedStates { organization, subject, row, namespace, limit } = query;
        let (subject, name) = (subject.text(), format!("{} ", row.as_str()));
        let mut entries = audit::entries(&self.state(), self.trail);
        entries.retain(|entry| {
            let rows = entry.rows.as_deref().unwrap_or_default();
            let named = |namespace: &Namespace| entry.namespace.as_deref() == Some(namespace.as_str());
            organization_of(entry) == organization.to_string()
                && entry.subject == subject
                && (self.has(Defect::MixesNamespaces) || namespace.as_ref().is_none_or(named))
                && rows.lines().any(|line| line.starts_with(&name))
        });
        entries.reverse();
        entries.truncate(*limit);
        entries
    }
}

impl InspectionRows for MemoryRows<'_> {
    fn credential_places(&self, after: Option<StoredRowKey>, limit: usize) -> Reply<'_, Vec<StoredRowKey>> {
        let limit = if self.has(Defect::HidesCredentials) { 0 } else { limit };
        let state = self.state();
        let places = state.credentials.keys().map(|(organization, id)| (organization.to_string(), id.to_string()));
        done(page(places, after.as_ref(), limit))
    }

    fn whole_credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<WholeCredential>> {
        let state = self.state();
        let whole = state.credentials.get(&(organization, id)).map(|row| {
            let read =
                row.data.keys().filter(|number| !self.has(Defect::InspectsLess) || **number == row.stored.version);
            let data = read.filter_map(|number| row.fetched(*number)).collect();
            WholeCredential { versions: row.versions(), data, labels: row.labels.clone() }
        });
        done(whole)
    }

    /// Versions are stored in the credential.
    fn version_places(&self, _: Option<StoredRowKey>, _: usize) -> Reply<'_, Vec<(StoredRowKey, bool)>> {
        done(Vec::new())
    }

    fn recorded_entries(&self, query: &RecordedStates) -> Reply<'_, Vec<AuditEntry>> {
        done(self.entries_about(query))
    }

    fn recorded_subjects(&self, after: Option<RecordedSubject>, limit: usize) -> Reply<'_, Vec<RecordedSubject>> {
        let entries = audit::entries(&self.state(), self.trail);
        let recorded = entries.into_iter().filter(|entry| entry.rows.is_some());
        let named = recorded.map(|entry| {
            let organization = organization_of(&entry);
            RecordedSubject { subject: entry.subject, entry: entry.id, organization }
        });
        done(page(named, after.as_ref(), limit))
    }

    fn row_exists(&self, row: RecordedRow, (organization, id): RowKey) -> Reply<'_, bool> {
        let state = self.state();
        done(match row {
            RecordedRow::Credential => state.credentials.contains_key(&(organization, CredentialId::from_uuid(id))),
            _ => state.entities.contains_key(&(organization, row.as_str(), id)),
        })
    }
}

fn organization_of(entry: &AuditEntry) -> String {
    entry.organization.clone().unwrap_or_else(|| OF_INSTANCE.to_string())
}
