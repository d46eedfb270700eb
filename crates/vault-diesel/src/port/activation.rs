//! The port of activations.

use super::{Database, DieselStore};
use async_trait::async_trait;
use vault_core::activation::{Activation, IssuanceRefusal};
use vault_core::port::{
    AbortActivation, ActivationRepository, EndActivation, FetchCredentials, FetchedCredential, FindActivation,
    ForIntegration, IssueCredentials, ListActivations, StoreError,
};

#[async_trait]
impl<D: Database> ActivationRepository for DieselStore<D> {
    async fn fetch_credentials(
        &self,
        command: ForIntegration<FetchCredentials>,
    ) -> Result<Vec<FetchedCredential>, StoreError> {
        self.run_for(command.principal.organization, command).await
    }

    async fn issue_credentials(
        &self,
        command: ForIntegration<IssueCredentials>,
    ) -> Result<Option<IssuanceRefusal>, StoreError> {
        self.run_for(command.principal.organization, command).await
    }

    async fn list_activations(&self, query: ListActivations) -> Result<Vec<Activation>, StoreError> {
        self.answer(Some(query.principal.organization), query).await
    }

    async fn find_activation(&self, query: FindActivation) -> Result<Option<Activation>, StoreError> {
        self.answer(Some(query.principal.organization), query).await
    }

    async fn end_activation(&self, command: ForIntegration<EndActivation>) -> Result<bool, StoreError> {
        self.run_for(command.principal.organization, command).await
    }

    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError> {
        self.run_for(command.organization, command).await
    }
}
