//! The contracts of groups of ports, each on a store that exposes only the ports of that group.

use async_trait::async_trait;
use std::sync::Arc;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AccountStore, ActivationStore, ChangeCredential, ChangeIntegration, CreateIntegration, CreateOrganization,
    CredentialStore, DeleteCredential, FreezeNamespace, IntegrationStore, OperatorStore, SaveCredential,
};
use vault_core::principal::SessionPrincipal;
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_testkit::contract::{
    AccountSubject, ActivationSubject, CredentialSubject, IntegrationSubject, OperatorSubject, Organizations,
    SessionSubject, Subject,
};
use vault_testkit::memory::MemoryStore;

struct Shown<P: ?Sized> {
    memory: Arc<MemoryStore>,
    ports: Arc<P>,
}

#[async_trait]
impl<P: Send + Sync + ?Sized + 'static> Subject for Shown<P> {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        self.memory.audit_actions(organization).await
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        Subject::rows(&self.memory, organization).await
    }
}

impl AccountSubject for Shown<dyn AccountStore> {
    fn accounts(&self) -> Arc<dyn AccountStore> {
        Arc::clone(&self.ports)
    }
}

impl OperatorSubject for Shown<dyn OperatorStore> {
    fn operator(&self) -> Arc<dyn OperatorStore> {
        Arc::clone(&self.ports)
    }
}

/// Of the store itself: no port of a group creates organizations.
#[async_trait]
impl<P: Send + Sync + ?Sized + 'static> Organizations for Shown<P> {
    async fn add_organization(&self, command: CreateOrganization) {
        self.memory.add_organization(command).await;
    }

    async fn set_state(&self, organization: OrganizationId, state: OrganizationState) {
        Organizations::set_state(&self.memory, organization, state).await;
    }

    async fn delete_organization(&self, organization: OrganizationId) {
        Organizations::delete_organization(&self.memory, organization).await;
    }
}

#[async_trait]
impl<P: Send + Sync + ?Sized + 'static> SessionSubject for Shown<P> {
    async fn sessions(&self, organization: OrganizationId, role: Role, now: Timestamp) -> [SessionPrincipal; 2] {
        self.memory.sessions(organization, role, now).await
    }

    async fn end_session(&self, session: SessionPrincipal, now: Timestamp) {
        SessionSubject::end_session(&self.memory, session, now).await;
    }
}

impl CredentialSubject for Shown<dyn CredentialStore> {
    fn credentials(&self) -> Arc<dyn CredentialStore> {
        Arc::clone(&self.ports)
    }
}

#[async_trait]
impl IntegrationSubject for Shown<dyn IntegrationStore> {
    fn integrations(&self) -> Arc<dyn IntegrationStore> {
        Arc::clone(&self.ports)
    }

    async fn add_credential(&self, command: Command<SaveCredential>) {
        self.memory.add_credential(command).await;
    }
}

#[async_trait]
impl ActivationSubject for Shown<dyn ActivationStore> {
    fn activations(&self) -> Arc<dyn ActivationStore> {
        Arc::clone(&self.ports)
    }

    async fn create_integration(&self, command: Command<CreateIntegration>) {
        ActivationSubject::create_integration(&self.memory, command).await;
    }

    async fn change_integration(&self, command: Command<ChangeIntegration>) {
        ActivationSubject::change_integration(&self.memory, command).await;
    }

    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) {
        ActivationSubject::freeze_namespace(&self.memory, command).await;
    }

    async fn save_credential(&self, command: Command<SaveCredential>) {
        ActivationSubject::save_credential(&self.memory, command).await;
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) {
        ActivationSubject::change_credential(&self.memory, command).await;
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) {
        ActivationSubject::delete_credential(&self.memory, command).await;
    }
}

macro_rules! shown {
    ($($name:ident: $port:ident;)*) => {$(
        async fn $name() -> Shown<dyn $port> {
            let memory = Arc::<MemoryStore>::default();
            Shown { ports: Arc::clone(&memory) as Arc<dyn $port>, memory }
        }
    )*};
}

shown! {
    accounts: AccountStore;
    operator: OperatorStore;
    credentials: CredentialStore;
    integrations: IntegrationStore;
    activations: ActivationStore;
}

vault_testkit::account_contract!(accounts());
vault_testkit::operator_contract!(operator());
vault_testkit::credential_contract!(credentials());
vault_testkit::integration_contract!(integrations());
vault_testkit::activation_contract!(activations());
