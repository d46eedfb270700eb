//! A PostgreSQL server that lives as long as the test program.

use super::NOW;
use secrecy::SecretString;
use std::sync::{Arc, LazyLock};
use vault_diesel::{PostgresSettings, PostgresStore};
use vault_testkit::postgres::Cluster;

/// The address of a database of the test program's own, with the schema in it.
pub(crate) fn database() -> &'static str {
    static DATABASE: LazyLock<String> = LazyLock::new(|| {
        let address = Cluster::shared().create_database();
        // On a thread of its own: whoever asks first may be inside a runtime.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let store = store(&address).await;
                    store.migrate(NOW, &mut |_| {}).await.unwrap();
                });
            });
        });
        address
    });
    &DATABASE
}

/// A store of its own on a database.
pub(crate) async fn store(address: &str) -> Arc<PostgresStore> {
    PostgresStore::connect(PostgresSettings { url: SecretString::from(address), connections: 8 }).await.unwrap()
}

/// What `psql` says.
pub(crate) fn query(address: &str, sql: &str) -> String {
    Cluster::shared().execute(address, sql)
}
