//! The migration history: released migrations are unchanged, portable, and distributable by organization.

use crate::support;

use sha2::{Digest as _, Sha256};
use support::NOW;
use support::postgres::{database, query, store};
use support::sqlite::Scratch;
use vault_diesel::{MIGRATIONS, MigrateError, SchemaState};
use vault_testkit::postgres::Cluster;

/// Released migrations never change: a change is a new migration. None is released yet.
const RELEASED: [(&str, &str); 0] = [];

/// Tables that belong to no organization.
const SHARED: [&str; 11] = [
    "audit",
    "audit_checkpoints",
    "audit_delivery",
    "check_rounds",
    "event_position",
    "global_lookups",
    "instance",
    "issuers",
    "known_networks",
    "organizations",
    "schema_versions",
];

/// Keys in which the organization comes after the ID.
const ID_FIRST: [&str; 2] = ["sqlite_autoindex_credential_secrets_1", "credential_secrets_pkey"];

/// Indexes by which maintenance finds expired rows of all organizations.
const MAINTENANCE: [&str; 9] = [
    "account_notices_age",
    "activations_expiry",
    "attempt_classes_age",
    "idempotency_keys_age",
    "sessions_expiry",
    "credential_secrets_by_end",
    "deliveries_ended",
    "credential_uses_by_age",
    "hourly_counts_by_age",
];

#[test]
fn released_migrations_are_never_changed() {
    let history: Vec<_> = MIGRATIONS
        .iter()
        .map(|migration| {
            let hash = Sha256::digest(migration.sql.as_bytes());
            (migration.version, hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        })
        .collect();
    let released: Vec<_> = RELEASED.iter().map(|(version, hash)| (*version, (*hash).to_owned())).collect();
    assert_eq!(history[..released.len()], released[..]);
}

#[test]
fn migrations_keep_to_the_portable_subset() {
    for migration in MIGRATIONS {
        let statements = migration.sql.lines().filter(|line| !line.trim_start().starts_with("--"));
        let sql = statements.collect::<Vec<_>>().join("\n").to_uppercase();
        for foreign in ["AUTOINCREMENT", "SERIAL", "TRIGGER", "INTEGER", "TIMESTAMP", "JSON", "NOW()", "VARCHAR"] {
            assert!(!sql.contains(foreign), "{} contains {foreign}", migration.version);
        }
    }
}

#[tokio::test]
async fn tenant_keys_and_indexes_start_with_organization_on_sqlite() {
    let scratch = Scratch::new();
    scratch.migrated().await.close().await;
    let connection = scratch.bare();
    let mut statement = connection
        .prepare(
            "SELECT t.name, i.name, c.name FROM sqlite_master AS t \
             JOIN pragma_index_list(t.name) AS i JOIN pragma_index_info(i.name) AS c \
             WHERE t.type = 'table' AND c.seqno = 0",
        )
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let found: Vec<(String, String, String)> = rows.map(Result::unwrap).collect();
    assert!(found.len() > 15, "{found:?}");
    for (table, index, first) in found {
        let known = MAINTENANCE.contains(&index.as_str()) || ID_FIRST.contains(&index.as_str());
        let shared = SHARED.contains(&table.as_str()) || known;
        assert!(shared || first == "organization_id", "{index} of {table}");
    }
}

#[tokio::test]
async fn tenant_keys_and_indexes_start_with_organization_on_postgres() {
    let found = query(
        database(),
        "SELECT t.relname, i.relname, a.attname FROM pg_index x \
         JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid \
         JOIN pg_namespace n ON n.oid = t.relnamespace \
         JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0] WHERE n.nspname = 'public'",
    );
    assert!(found.lines().count() > 15, "{found}");
    for line in found.lines() {
        let mut fields = line.split('|');
        let (table, index, first) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        let shared = SHARED.contains(&table) || MAINTENANCE.contains(&index) || ID_FIRST.contains(&index);
        assert!(shared || first == "organization_id", "{index} of {table}");
    }
}

#[tokio::test]
async fn database_is_migrated_once_on_sqlite() {
    let scratch = Scratch::new();
    let store = scratch.open();
    assert_eq!(store.schema_state().await.unwrap(), SchemaState::Empty);
    let mut reported = Vec::new();
    assert_eq!(store.migrate(NOW, &mut |migration| reported.push(migration)).await.unwrap(), MIGRATIONS.len());
    assert_eq!(reported, MIGRATIONS);
    assert_eq!(store.schema_state().await.unwrap(), SchemaState::Current);
    assert_eq!(store.migrate(NOW, &mut |_| {}).await.unwrap(), 0);
    scratch.bare().execute("INSERT INTO schema_versions VALUES ('9999_later', 0)", []).unwrap();
    assert_eq!(store.schema_state().await.unwrap(), SchemaState::Newer("9999_later".to_owned()));
    let refusal = store.migrate(NOW, &mut |_| {}).await.unwrap_err();
    assert!(matches!(refusal, MigrateError::Newer(version) if version == "9999_later"));
}

#[tokio::test(flavor = "multi_thread")]
async fn database_is_migrated_once_by_several_on_postgres() {
    let address = Cluster::shared().create_database();
    let migrations = (0..6).map(|_| {
        let address = address.clone();
        tokio::spawn(async move { store(&address).await.migrate(NOW, &mut |_| {}).await.unwrap() })
    });
    let mut ran = 0;
    for migration in migrations.collect::<Vec<_>>() {
        ran += migration.await.unwrap();
    }
    assert_eq!(ran, MIGRATIONS.len());
    let store = store(&address).await;
    assert_eq!(store.schema_state().await.unwrap(), SchemaState::Current);
    query(&address, "INSERT INTO schema_versions VALUES ('9999_later', 0)");
    assert_eq!(store.schema_state().await.unwrap(), SchemaState::Newer("9999_later".to_owned()));
}
