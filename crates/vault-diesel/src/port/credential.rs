//! The port of credentials.

use super::{Database, DieselStore};
use crate::transaction::credential::list;
use crate::transaction::credential::row::ShowCredential;
use crate::transaction::credential::versions::ReadVersions;
use async_trait::async_trait;
use vault_core::Command;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialRepository, CredentialUse, DeleteCredential, Find, Idempotency, List, ListCredentials,
    ListedRows, MatchCredential, RequestCheck, SaveCredential, StoreError, StoredCredential, StoredVersions,
    UsePosition,
};

#[async_trait]
impl<D: Database> CredentialRepository for DieselStore<D> {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        self.write_together(command).await
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError> {
        let organization = query.principal.organization();
        match list::is_one_statement(&query) {
            true => self.answer_autocommit(organization, query).await,
            false => self.answer(organization, query).await,
        }
    }

    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError> {
        self.answer_autocommit(query.principal.organization(), ShowCredential(query)).await
    }

    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.answer_autocommit(query.principal.organization(), ReadVersions(query)).await
    }

    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.answer_for_writing(query.principal.organization(), ReadVersions(query)).await
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        self.write_together(command).await
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        self.write_together(command).await
    }

    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError> {
        self.run(command).await
    }

    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }
}
