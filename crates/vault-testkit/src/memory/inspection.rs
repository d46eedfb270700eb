//! Reading stored rows for integrity checks.

use super::MemoryStore;
use crate::clock::lock;
use async_trait::async_trait;
use vault_core::audit::{AuditEntry, RecordedRow};
use vault_core::entity::EntityKey;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    Inspection, RecordedStates, RecordedSubject, RowKey, StoreError, StoredRowKey, WholeCredential,
};

/// Returns the next page of row keys.
pub(super) fn page<O: ToString, I: ToString>(
    places: impl Iterator<Item = (O, I)>,
    after: Option<StoredRowKey>,
    limit: usize,
) -> Vec<StoredRowKey> {
    let mut places: Vec<_> = places.map(|(organization, id)| (organization.to_string(), id.to_string())).collect();
    places.retain(|place| after.as_ref().is_none_or(|after| place > after));
    places.sort_unstable();
    places.truncate(limit);
    places
}

#[async_trait]
impl Inspection for MemoryStore {
    async fn credential_places(
        &self,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Result<Vec<StoredRowKey>, StoreError> {
        self.decide(|state| page(state.credentials.keys().copied(), after, limit))
    }

    async fn whole_credential(
        &self,
        organization: OrganizationId,
        id: CredentialId,
    ) -> Result<Option<WholeCredential>, StoreError> {
        self.decide(|state| {
            let row = state.credentials.get(&(organization, id))?;
            let data = row.data.keys().filter_map(|number| row.fetched(*number)).collect();
            Some(WholeCredential { versions: row.versions(), data, labels: row.labels.clone() })
        })
    }

    async fn version_places(&self, _: Option<StoredRowKey>, _: usize) -> Result<Vec<(StoredRowKey, bool)>, StoreError> {
        self.decide(|_| Vec::new()) // versions are stored in the credential
    }

    async fn recorded_states(&self, query: RecordedStates) -> Result<Vec<AuditEntry>, StoreError> {
        self.decide(|_| ())?;
        Ok(matching(lock(&self.inner).entries(), &query))
    }

    async fn recorded_subjects(
        &self,
        after: Option<RecordedSubject>,
        limit: usize,
    ) -> Result<Vec<RecordedSubject>, StoreError> {
        self.decide(|_| ())?;
        let entries = lock(&self.inner).entries();
        let recorded = entries.into_iter().filter(|entry| entry.rows.is_some());
        let named = recorded.map(|entry| {
            let organization = organization_of(&entry);
            RecordedSubject { subject: entry.subject, entry: entry.id, organization }
        });
        let mut subjects: Vec<_> = named.filter(|one| after.as_ref().is_none_or(|after| one > after)).collect();
        subjects.sort_unstable();
        subjects.truncate(limit);
        Ok(subjects)
    }

    async fn existing_rows(&self, row: RecordedRow, places: Vec<RowKey>) -> Result<Vec<RowKey>, StoreError> {
        self.decide(|state| {
            let credentials = state.credentials.keys().map(|(of, id)| (*of, *id.as_uuid()));
            let of_kind = state.entities.keys().filter(|(_, kind, _)| *kind == row.as_str());
            let mut existing: Vec<RowKey> = if row.table() == EntityKey::TABLE {
                of_kind.map(|(of, _, id)| (*of, *id)).collect()
            } else {
                credentials.collect()
            };
            existing.retain(|place| places.contains(place));
            existing
        })
    }
}

fn organization_of(entry: &AuditEntry) -> String {
    entry.organization.clone().unwrap_or_else(|| OrganizationId::from_bytes([0; 16]).to_string())
}

/// Returns the newest of these entries, which are ordered by ID, that contain the state of a row.
pub(super) fn matching(mut entries: Vec<AuditEntry>, query: &RecordedStates) -> Vec<AuditEntry> {
    let RecordedStates { organization, subject, row, namespace, limit } = query;
    let (organization, subject, name) = (organization.to_string(), subject.text(), format!("{} ", row.as_str()));
    entries.retain(|entry| {
        let rows = entry.rows.as_deref().unwrap_or_default();
        let named = |namespace: &Namespace| entry.namespace.as_deref() == Some(namespace.as_str());
        organization_of(entry) == organization
            && entry.subject == subject
            && namespace.as_ref().is_none_or(named)
            && rows.lines().any(|line| line.starts_with(&name))
    });
    entries.reverse();
    entries.truncate(*limit);
    entries
}
