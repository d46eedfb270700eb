//! The port of signing keys.

use super::{Database, DieselStore};
use crate::transaction::federation::{ListFederationKeys, RecordPublications};
use async_trait::async_trait;
use vault_core::federation::StoredFederationKey;
use vault_core::port::{ChangeFederationKeys, FederationKeyRepository, RecordPublication, StoreError};

#[async_trait]
impl<D: Database> FederationKeyRepository for DieselStore<D> {
    async fn federation_keys(&self) -> Result<Vec<Result<StoredFederationKey, String>>, StoreError> {
        self.answer(None, ListFederationKeys).await
    }

    async fn change_federation_keys(&self, command: ChangeFederationKeys) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn record_publication(&self, checks: Vec<RecordPublication>) -> Result<bool, StoreError> {
        self.run(RecordPublications(checks)).await
    }
}
