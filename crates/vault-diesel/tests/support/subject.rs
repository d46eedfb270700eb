//! The stores of this crate, as subjects of the contract cases.

use super::NOW;
use super::postgres::{query, shared_database, store};
use super::sqlite::Scratch;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_diesel::{PostgresStore, SqliteStore};
use vault_testkit::contract::{ContractStore, Store};
use vault_testkit::postgres::Cluster;

/// A store on a separate file.
pub(crate) struct OnSqlite {
    pub(crate) scratch: Scratch,
    store: Arc<SqliteStore>,
}

impl OnSqlite {
    pub(crate) async fn new() -> Self {
        let scratch = Scratch::new();
        let store = scratch.migrated().await;
        Self { scratch, store }
    }
}

#[async_trait]
impl ContractStore for OnSqlite {
    fn ports(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let connection = self.scratch.bare();
        let mut statement = connection.prepare("SELECT action FROM audit WHERE organization_id = ?1").unwrap();
        let actions = statement.query_map([organization.as_uuid()], |row| row.get(0)).unwrap();
        actions.map(Result::unwrap).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        let connection = self.scratch.bare();
        let tables = "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c
                      WHERE m.type = 'table' AND m.name <> 'audit' AND c.name = 'organization_id'";
        let mut statement = connection.prepare(tables).unwrap();
        let tables: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(tables.len() > 15, "{tables:?}");
        let has_rows = |table: &String| {
            let any = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE organization_id = ?1)");
            connection.query_row(&any, [organization.as_uuid()], |row| row.get(0)).unwrap()
        };
        tables.into_iter().filter(has_rows).collect()
    }
}

/// A store on a PostgreSQL database.
pub(crate) struct OnPostgres {
    pub(crate) address: String,
    store: Arc<PostgresStore>,
}

impl OnPostgres {
    /// Opens a store on the database that the cases share.
    pub(crate) async fn shared() -> Self {
        let address = shared_database().to_owned();
        Self { store: store(&address).await, address }
    }

    /// Opens a store on a separate database.
    pub(crate) async fn alone() -> Self {
        let address = Cluster::shared().create_database();
        let store = store(&address).await;
        store.migrate(NOW, &mut |_| {}).await.unwrap();
        Self { address, store }
    }
}

#[async_trait]
impl ContractStore for OnPostgres {
    fn ports(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        let actions =
            query(&self.address, &format!("SELECT action FROM audit WHERE organization_id = '{organization}'"));
        actions.lines().map(str::to_owned).collect()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        let tables = "SELECT table_name FROM information_schema.columns
                      WHERE table_schema = 'public' AND column_name = 'organization_id' AND table_name <> 'audit'";
        let tables = query(&self.address, tables);
        assert!(tables.lines().count() > 15, "{tables}");
        let any = |table| format!("SELECT '{table}' FROM {table} WHERE organization_id = '{organization}'");
        let any: Vec<_> = tables.lines().map(any).collect();
        query(&self.address, &any.join(" UNION ")).lines().map(str::to_owned).collect()
    }
}
