//! The embedded store keeps the contract of the ports.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use async_trait::async_trait;
use std::sync::Arc;
use support::sqlite::Scratch;
use vault_core::id::OrganizationId;
use vault_diesel::SqliteStore;
use vault_testkit::contract::{ContractStore, Store};

struct Subject {
    scratch: Scratch,
    store: Arc<SqliteStore>,
}

async fn subject() -> Subject {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    Subject { scratch, store }
}

#[async_trait]
impl ContractStore for Subject {
    fn ports(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let connection = self.scratch.bare();
        let mut statement = connection.prepare("SELECT action FROM audit WHERE organization_id = ?1").unwrap();
        let actions = statement.query_map([organization.to_string()], |row| row.get(0)).unwrap();
        actions.map(Result::unwrap).collect()
    }
}

vault_testkit::store_contract!(subject());
