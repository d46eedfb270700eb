//! The contracts of groups of ports, each on a store that shows the ports of that group and no other.

use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::port::{AccountStore, OperatorStore};
use vault_testkit::contract::{AccountSubject, OperatorSubject, Subject};
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

async fn accounts() -> Shown<dyn AccountStore> {
    let memory = Arc::<MemoryStore>::default();
    Shown { ports: Arc::clone(&memory) as Arc<dyn AccountStore>, memory }
}

async fn operator() -> Shown<dyn OperatorStore> {
    let memory = Arc::<MemoryStore>::default();
    Shown { ports: Arc::clone(&memory) as Arc<dyn OperatorStore>, memory }
}

vault_testkit::account_contract!(accounts());
vault_testkit::operator_contract!(operator());
