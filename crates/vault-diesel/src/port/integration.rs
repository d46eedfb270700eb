//! The ports of integrations and frozen namespaces.

use super::{Database, DieselStore};
use crate::transaction::integration::freezes::ListFrozen;
use crate::transaction::integration::lookup::ListIntegrations;
use async_trait::async_trait;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::integration::StoredIntegration;
use vault_core::namespace::Namespace;
use vault_core::port::{
    ChangeIntegration, CreateIntegration, Find, FreezeNamespace, FreezeRepository, Freezing, FrozenNamespace,
    IntegrationKey, IntegrationRepository, List, ListedNamespace, NamePosition, StoreError,
};

#[async_trait]
impl<D: Database> IntegrationRepository for DieselStore<D> {
    async fn create_integration(&self, command: Command<CreateIntegration>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn find_integration(&self, query: Find<IntegrationKey>) -> Result<Option<StoredIntegration>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }

    async fn list_integrations(&self, query: List<NamePosition>) -> Result<Vec<StoredIntegration>, StoreError> {
        self.answer(query.principal.organization(), ListIntegrations(query)).await
    }

    async fn change_integration(&self, command: Command<ChangeIntegration>) -> Result<(), StoreError> {
        self.run(command).await
    }
}

#[async_trait]
impl<D: Database> FreezeRepository for DieselStore<D> {
    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) -> Result<Option<Freezing>, StoreError> {
        self.run(command).await
    }

    async fn list_frozen(&self, query: List<NamePosition>) -> Result<Vec<FrozenNamespace>, StoreError> {
        self.answer(query.principal.organization(), ListFrozen(query)).await
    }

    async fn list_namespaces(
        &self,
        query: List<Namespace, OrganizationId>,
    ) -> Result<Vec<ListedNamespace>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }
}
