//! A PostgreSQL server for the lifetime of the test program.

use super::{NOW, build};
use secrecy::SecretString;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use vault_diesel::{PostgresSettings, PostgresStore};
use vault_testkit::postgres::Cluster;

/// Returns the address of a database of this process, with the schema.
pub(crate) fn database() -> &'static str {
    static DATABASE: LazyLock<String> = LazyLock::new(|| {
        let address = Cluster::shared().create_database();
        migrate(&address);
        address
    });
    &DATABASE
}

/// Returns the address of a database with the schema that all processes of this build share.
pub(crate) fn shared_database() -> &'static str {
    static DATABASE: LazyLock<String> = LazyLock::new(|| Cluster::shared().shared_database(&build(), migrate));
    &DATABASE
}

fn migrate(address: &str) {
    // On a separate thread, because the caller may be inside a runtime.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { store(address).await.migrate(NOW, &mut |_| {}).await.unwrap() });
        });
    });
}

/// Opens a separate store on a database.
pub(crate) async fn store(address: &str) -> Arc<PostgresStore> {
    let settings = PostgresSettings::new(SecretString::from(address));
    PostgresStore::connect(PostgresSettings { connections: 8, ..settings }).await.unwrap()
}

/// Opens a separate store without a time limit, so that the speed of the host does not matter.
pub(crate) async fn patient_store(address: &str) -> Arc<PostgresStore> {
    let settings = PostgresSettings::new(SecretString::from(address));
    let longest_wait = Duration::from_secs(120);
    PostgresStore::connect(PostgresSettings { connections: 8, longest_wait, ..settings }).await.unwrap()
}

/// Returns the output of `psql`.
pub(crate) fn query(address: &str, sql: &str) -> String {
    Cluster::shared().execute(address, sql)
}

/// Opens a connection that bypasses the store.
pub(crate) async fn client(address: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until `count` connections to the observer's database wait for a lock.
pub(crate) async fn wait_for_waiting(observer: &tokio_postgres::Client, count: i64, over: impl Fn() -> bool) {
    while waiting(observer).await != count {
        assert!(!over(), "it did not wait");
        tokio::task::yield_now().await;
    }
}

/// Returns the number of connections to the observer's database that wait for a lock.
pub(crate) async fn waiting(observer: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    observer.query_one(sql, &[]).await.unwrap().get(0)
}
