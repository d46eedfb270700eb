//! Credentials.

use super::super::backend::Store;
use super::super::decide;
use super::{list, row, save, uses, versions};
use async_trait::async_trait;
use vault_core::Command;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialRepository, CredentialUse, DeleteCredential, Find, Idempotency, List, ListCredentials,
    ListedRows, MatchCredential, RequestCheck, SaveCredential, StoreError, StoredCredential, StoredVersions,
    UsePosition,
};

#[async_trait]
impl CredentialRepository for Store {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        Ok(self.write_together(command).await??)
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        Ok(self
            .read_for(query.principal.organization(), query, |connection, query| {
                Box::pin(save::find_save(connection, query))
            })
            .await?
            .transpose()?)
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError> {
        if list::is_one_statement(&query) {
            self.read_at_once_for(query.principal.organization(), query, |connection, query| {
                Box::pin(list::by_one_index(connection, query))
            })
            .await
        } else {
            self.read_for(query.principal.organization(), query, |connection, query| {
                Box::pin(list::list(connection, query))
            })
            .await
        }
    }

    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError> {
        self.read_at_once_for(query.principal.organization(), query, |connection, query| {
            Box::pin(row::show(connection, query))
        })
        .await
    }

    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.read_at_once_for(query.principal.organization(), query, |connection, query| {
            Box::pin(versions::versions(connection, query))
        })
        .await
    }

    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.read_for_writing(query.principal.organization(), query, |connection, query| {
            Box::pin(versions::versions(connection, query))
        })
        .await
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        Ok(self.write_together(command).await??)
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        Ok(self.write_together(command).await??)
    }

    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(uses::list(connection, query))
        })
        .await
    }
}
