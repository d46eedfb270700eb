//! The rotation of the instance key, on both databases: each case has a database of its own.

use crate::support;

use async_trait::async_trait;
use std::sync::Arc;
use support::NOW;
use support::postgres::{query, store};
use support::sqlite::Scratch;
use vault_core::id::OrganizationId;
use vault_testkit::contract::{self, ContractStore, Store, instance_rotation, run};
use vault_testkit::memory::MemoryStore;
use vault_testkit::postgres::Cluster;

struct Subject {
    store: Arc<dyn Store>,
    audit: Box<dyn Fn(OrganizationId) -> Vec<String> + Send + Sync>,
}

impl ContractStore for Subject {
    fn ports(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
}

#[async_trait]
impl contract::Subject for Subject {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        (self.audit)(organization)
    }

    async fn rows(&self, _organization: OrganizationId) -> Vec<String> {
        Vec::new() // no case asks
    }
}

async fn sqlite() -> Subject {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    let audit = Box::new(move |organization: OrganizationId| {
        let connection = scratch.bare();
        let mut statement = connection.prepare("SELECT action FROM audit WHERE organization_id = ?1").unwrap();
        let actions = statement.query_map([organization.to_string()], |row| row.get(0)).unwrap();
        actions.collect::<Result<_, _>>().unwrap()
    });
    Subject { store, audit }
}

async fn postgres() -> Subject {
    let address = Cluster::shared().create_database();
    let store = store(&address).await;
    store.migrate(NOW, &mut |_| {}).await.unwrap();
    let audit = Box::new(move |organization: OrganizationId| {
        let actions = query(&address, &format!("SELECT action FROM audit WHERE organization_id = '{organization}'"));
        actions.lines().map(str::to_owned).collect()
    });
    Subject { store, audit }
}

macro_rules! on_all_stores {
    ($($case:ident: $memory:ident, $sqlite:ident, $postgres:ident;)*) => {$(
        #[test]
        fn $memory() {
            run(async { Arc::new(MemoryStore::new()) }, "ROTATION.md", async |store: &_| instance_rotation::$case(store).await);
        }

        #[test]
        fn $sqlite() {
            run(sqlite(), "ROTATION.md", async |store: &_| instance_rotation::$case(store).await);
        }

        #[test]
        fn $postgres() {
            run(postgres(), "ROTATION.md", async |store: &_| instance_rotation::$case(store).await);
        }
    )*};
}

on_all_stores! {
    nothing_comes_under_a_replaced_instance_key:
        nothing_comes_under_a_replaced_instance_key_in_memory,
        nothing_comes_under_a_replaced_instance_key_on_sqlite,
        nothing_comes_under_a_replaced_instance_key_on_postgres;
    rows_move_to_the_next_instance_key:
        rows_move_to_the_next_instance_key_in_memory,
        rows_move_to_the_next_instance_key_on_sqlite,
        rows_move_to_the_next_instance_key_on_postgres;
}
