//! The cases of accounts, on a store that shows the ports of accounts and no other.

use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::port::AccountStore;
use vault_testkit::contract::{AccountSubject, Subject};
use vault_testkit::memory::MemoryStore;

struct Accounts(Arc<MemoryStore>);

#[async_trait]
impl Subject for Accounts {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        self.0.audit_actions(organization).await
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        Subject::rows(&self.0, organization).await
    }
}

impl AccountSubject for Accounts {
    fn accounts(&self) -> Arc<dyn AccountStore> {
        Arc::clone(&self.0) as Arc<dyn AccountStore>
    }
}

async fn subject() -> Accounts {
    Accounts(Arc::default())
}

vault_testkit::account_contract!(subject());
