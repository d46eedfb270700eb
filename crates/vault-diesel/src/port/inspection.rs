//! The port of the integrity check.

use super::{Database, DieselStore};
use crate::transaction::audit::entries::RecordedSubjects;
use crate::transaction::inspection::{CredentialPlaces, ExistingRows, ReadWholeCredential, VersionPlaces};
use async_trait::async_trait;
use vault_core::audit::{AuditEntry, RecordedRow};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{
    Inspection, RecordedStates, RecordedSubject, RowKey, StoreError, StoredRowKey, WholeCredential,
};

#[async_trait]
impl<D: Database> Inspection for DieselStore<D> {
    async fn credential_places(
        &self,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Result<Vec<StoredRowKey>, StoreError> {
        self.answer(None, CredentialPlaces { after: after.unwrap_or_default(), limit }).await
    }

    async fn whole_credential(
        &self,
        organization: OrganizationId,
        id: CredentialId,
    ) -> Result<Option<WholeCredential>, StoreError> {
        self.answer(None, ReadWholeCredential { organization, id }).await
    }

    async fn version_places(
        &self,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Result<Vec<(StoredRowKey, bool)>, StoreError> {
        self.answer(None, VersionPlaces { after: after.unwrap_or_default(), limit }).await
    }

    async fn recorded_states(&self, query: RecordedStates) -> Result<Vec<AuditEntry>, StoreError> {
        self.answer(None, query).await
    }

    async fn recorded_subjects(
        &self,
        after: Option<RecordedSubject>,
        limit: usize,
    ) -> Result<Vec<RecordedSubject>, StoreError> {
        self.answer(None, RecordedSubjects { after, limit }).await
    }

    async fn existing_rows(&self, row: RecordedRow, places: Vec<RowKey>) -> Result<Vec<RowKey>, StoreError> {
        self.answer(None, ExistingRows { row, places }).await
    }
}
