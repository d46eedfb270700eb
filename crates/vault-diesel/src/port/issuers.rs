//! The port of issuers of identity tokens.

use super::{Database, DieselStore};
use crate::transaction::issuers::{FindIssuers, ListIssuers, RecordKeys};
use async_trait::async_trait;
use vault_core::Command;
use vault_core::id::IssuerId;
use vault_core::identity::{IssuerName, StoredIssuer};
use vault_core::port::{IssuerRepository, StoreError};

#[async_trait]
impl<D: Database> IssuerRepository for DieselStore<D> {
    async fn add_issuer(&self, command: Command<StoredIssuer>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn list_issuers(&self) -> Result<Vec<StoredIssuer>, StoreError> {
        self.answer(None, ListIssuers).await
    }

    async fn find_issuers(&self, names: Vec<IssuerName>) -> Result<Vec<StoredIssuer>, StoreError> {
        self.answer(None, FindIssuers(names)).await
    }

    async fn remove_issuer(&self, command: Command<IssuerId>) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn record_keys(&self, seen: StoredIssuer, next: StoredIssuer) -> Result<bool, StoreError> {
        self.run(RecordKeys { seen, next }).await
    }
}
