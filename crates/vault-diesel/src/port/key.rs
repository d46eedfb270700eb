//! The ports of keys.

use super::{Database, DieselStore};
use crate::transaction::organization::keys::{ReadInstance, ReadOrganizationKeys};
use crate::transaction::organization::rotation::CountSealed;
use async_trait::async_trait;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{
    CreateInstance, DestroyOrganizationKey, FindSealed, KeyDestruction, KeyRepository, KeyRotation, MoveSealed,
    ReplaceOrganizationKey, ReserveKeyUses, SealedCredential, StoreError,
};
use vault_core::sealed::{InstanceRecord, OrganizationKeys};

#[async_trait]
impl<D: Database> KeyRepository for DieselStore<D> {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.answer(None, ReadInstance).await
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError> {
        self.answer(None, ReadOrganizationKeys(organization)).await
    }

    async fn reserve_key_uses(&self, command: ReserveKeyUses) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError> {
        self.run(command).await
    }
}

#[async_trait]
impl<D: Database> KeyRotation for DieselStore<D> {
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedCredential>, StoreError> {
        self.answer(None, query).await
    }

    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<i64, StoreError> {
        self.answer(None, CountSealed { organization, key }).await
    }

    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError> {
        self.run(command).await
    }

    async fn destroy_organization_key(&self, command: DestroyOrganizationKey) -> Result<KeyDestruction, StoreError> {
        self.run(command).await
    }
}
