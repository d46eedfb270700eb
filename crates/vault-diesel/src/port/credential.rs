//! The port of credentials.

use super::{Database, DieselStore};
use crate::transaction::credential::versions::ReadVersions;
use async_trait::async_trait;
use vault_core::Command;
use vault_core::id::CredentialId;
use vault_core::port::{ChangeCredential, CredentialRepository, Find, SaveCredential, StoreError, StoredVersions};

#[async_trait]
impl<D: Database> CredentialRepository for DieselStore<D> {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        self.write_together(command).await
    }

    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.answer_for_writing(query.principal.organization(), ReadVersions(query)).await
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        self.write_together(command).await
    }
}
