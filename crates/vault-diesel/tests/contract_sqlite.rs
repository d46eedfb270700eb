//! The embedded store keeps the contract of the ports.

use crate::support;

use async_trait::async_trait;
use std::sync::Arc;
use support::sqlite::Scratch;
use vault_core::id::OrganizationId;
use vault_diesel::SqliteStore;
use vault_testkit::contract::{self, ContractStore, Store};

struct Subject {
    scratch: Scratch,
    store: Arc<SqliteStore>,
}

async fn subject() -> Subject {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    Subject { scratch, store }
}

impl ContractStore for Subject {
    fn ports(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}

#[async_trait]
impl contract::Subject for Subject {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let connection = self.scratch.bare();
        let mut statement = connection.prepare("SELECT action FROM audit WHERE organization_id = ?1").unwrap();
        let actions = statement.query_map([organization.to_string()], |row| row.get(0)).unwrap();
        actions.map(Result::unwrap).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        let connection = self.scratch.bare();
        let tables = "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c
                      WHERE m.type = 'table' AND m.name <> 'audit' AND c.name = 'organization_id'";
        let mut statement = connection.prepare(tables).unwrap();
        let tables: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(tables.len() > 15, "{tables:?}");
        let holds = |table: &String| {
            let any = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE organization_id = ?1)");
            connection.query_row(&any, [organization.to_string()], |row| row.get(0)).unwrap()
        };
        tables.into_iter().filter(holds).collect()
    }
}

vault_testkit::store_contract!(subject());
