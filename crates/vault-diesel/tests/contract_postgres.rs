//! The store on PostgreSQL keeps the contract of the ports. All cases share one database.

use crate::support;

use async_trait::async_trait;
use std::sync::Arc;
use support::postgres::{database, query, store};
use vault_core::id::OrganizationId;
use vault_diesel::PostgresStore;
use vault_testkit::contract::{self, ContractStore, Store};

struct Subject(Arc<PostgresStore>);

async fn subject() -> Subject {
    Subject(store(database()).await)
}

impl ContractStore for Subject {
    fn ports(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
}

#[async_trait]
impl contract::Subject for Subject {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let actions = query(database(), &format!("SELECT action FROM audit WHERE organization_id = '{organization}'"));
        actions.lines().map(str::to_owned).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        let tables = "SELECT table_name FROM information_schema.columns
                      WHERE table_schema = 'public' AND column_name = 'organization_id' AND table_name <> 'audit'";
        let tables = query(database(), tables);
        assert!(tables.lines().count() > 15, "{tables}");
        let any = |table| format!("SELECT '{table}' FROM {table} WHERE organization_id = '{organization}'");
        let any: Vec<_> = tables.lines().map(any).collect();
        query(database(), &any.join(" UNION ")).lines().map(str::to_owned).collect()
    }
}

vault_testkit::store_contract!(subject());
