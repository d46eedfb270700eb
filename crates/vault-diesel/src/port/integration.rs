//! The port of integrations.

use super::{Database, DieselStore};
use crate::transaction::integration::lookup::ListIntegrations;
use crate::transaction::integration::usage::{CountActions, CountHours};
use async_trait::async_trait;
use vault_core::Command;
use vault_core::integration::StoredIntegration;
use vault_core::port::{
    ChangeIntegration, CountedPeriod, CreateIntegration, Find, HourlyActions, IntegrationActions, IntegrationKey,
    IntegrationRepository, List, NamePosition, StoreError,
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

    async fn count_integration_actions(
        &self,
        query: Find<CountedPeriod>,
    ) -> Result<Vec<IntegrationActions>, StoreError> {
        self.answer(query.principal.organization(), CountActions(query)).await
    }

    async fn count_hourly_actions(&self, query: Find<CountedPeriod>) -> Result<Vec<HourlyActions>, StoreError> {
        self.answer(query.principal.organization(), CountHours(query)).await
    }

    async fn change_integration(&self, command: Command<ChangeIntegration>) -> Result<(), StoreError> {
        self.run(command).await
    }
}
