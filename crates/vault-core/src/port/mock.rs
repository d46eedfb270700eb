//! Mocks of the groups of store ports.

use super::*;
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::id::{CredentialId, OrganizationId};
use crate::sealed::{InstanceKeyRecord, InstanceRecord, OrganizationKeys, RetiringInstanceKey};
use async_trait::async_trait;

mockall::mock! {
    /// A store for the operations on credentials.
    pub CredentialStore {}

    #[async_trait]
    impl CredentialRepository for CredentialStore {
        async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError>;
        async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError>;
        async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError>;
        async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError>;
        async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError>;
        async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError>;
        async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError>;
        async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError>;
        async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError>;
        async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError>;
        async fn list_uses(
            &self,
            query: List<UsePosition, (OrganizationId, CredentialId)>,
        ) -> Result<Option<Vec<CredentialUse>>, StoreError>;
    }

    #[async_trait]
    impl KeyRepository for CredentialStore {
        async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError>;
        async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError>;
        async fn replace_root_key(&self, command: ReplaceRootKey) -> Result<bool, StoreError>;
        async fn retiring_instance_keys(&self) -> Result<Vec<RetiringInstanceKey>, StoreError>;
        async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError>;
        async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError>;
        async fn reserve_key_uses(&self, command: ReserveKeyUses) -> Result<bool, StoreError>;
        async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl AuditLog for CredentialStore {
        async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError>;
    }
}
