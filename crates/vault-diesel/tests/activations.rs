//! Activations on both stores beyond the contract of the ports: the content of their tables.

use crate::support;
use vault_testkit::commands::CredentialCommands as _;

use std::sync::Arc;
use support::postgres::{database, query, store};
use support::sqlite::Scratch;
use support::world::World;
use uuid::Uuid;
use vault_core::activation::{IssuedCredential, Purpose, VendedForm};
use vault_core::audit::{Actor, AppendEntries, AuditAction, AuditNote, Subject};
use vault_core::id::{CredentialId, IntegrationId};
use vault_core::maintenance::{DeleteExpired, Expired};
use vault_core::namespace::Namespace;
use vault_core::network::Network;
use vault_core::organization::DeleteOrganization;
use vault_core::port::RowStore;
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_diesel::SqliteStore;

/// Returns a number for a world that no other test uses.
const NUMBERS: u64 = 0x7000;

async fn on_sqlite() -> (Scratch, Arc<SqliteStore>) {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    (scratch, store)
}

/// Reads a column of text.
fn column(scratch: &Scratch, sql: &str) -> Vec<String> {
    let connection = scratch.bare();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Rewrites the IDs in a statement for SQLite.
fn with_blobs(sql: &str) -> String {
    let spell = |part: &str| match Uuid::try_parse(part) {
        Ok(id) => format!("x'{}'", id.simple()),
        Err(_) => format!("'{part}'"),
    };
    let parts = sql.split('\'').enumerate();
    parts.map(|(number, part)| if number % 2 == 1 { spell(part) } else { part.to_owned() }).collect()
}

/// `chr(10)` is the spelling of PostgreSQL.
const COLUMNS: &str = "coalesce(namespace, '-') || ' ' || coalesce(purpose, '-') || ' ' || \
     coalesce(network, '-') || ' ' || replace(coalesce(credentials, '-'), chr(10), '/')";

/// Appends entries with and without a note. Returns the query that reads their later columns, and its expected result.
async fn append_notes<S: RowStore + 'static>(store: &Arc<S>, world: &World) -> (String, Vec<String>) {
    let id = IntegrationId::from_bytes(support::world::bytes(world.next()));
    let namespace = Namespace::parse("Team/production", "").unwrap();
    let purpose = Purpose::parse("Größe “Ωmega” % ' nightly", "").unwrap();
    let credential = CredentialId::from_bytes(support::world::bytes(world.next()));
    let issued_credentials = |form, expires_at| IssuedCredential { credential, version: 7, form, expires_at };
    let full = AuditNote {
        purpose: Some(purpose),
        network: Some(Network::V4([192, 0, 2])),
        credentials: vec![
            issued_credentials(VendedForm::Raw, None),
            issued_credentials(VendedForm::Short, Some(Timestamp::from_millis(99_000))),
        ],
        ..AuditNote::of(namespace.clone())
    };
    let notes = [
        (Actor::Integration(id), Some(full)),
        (Actor::Integration(id), Some(AuditNote::of(namespace))),
        (Actor::Operator, None),
    ];
    let entries = notes.map(|(actor, note)| {
        let mut entry = world.audit(actor, AuditAction::NamespaceChecked, Subject::Integration(id));
        entry.record.note = note;
        entry
    });
    world.operate(store, &Principal::Operator, AppendEntries(entries.into())).await.unwrap();
    let sql = format!(
        "SELECT CASE WHEN integration_id = '{id}' THEN 'own ' ELSE '- ' END || {COLUMNS} FROM audit WHERE organization_id = '{}' AND action = 'namespace.checked' ORDER BY id",
        world.organization
    );
    let expected = [
        format!(
            "own Team/production Größe “Ωmega” % ' nightly 192.0.2.0/24 {credential} 7 raw/{credential} 7 short 99000"
        ),
        "own Team/production - - -".to_owned(),
        "- - - - -".to_owned(),
    ];
    (sql, expected.into())
}

#[tokio::test]
async fn audit_log_names_issued_credentials_on_sqlite() {
    let (scratch, store) = on_sqlite().await;
    let world = World::make(&store, NUMBERS).await;
    let (sql, expected) = append_notes(&store, &world).await;
    assert_eq!(column(&scratch, &with_blobs(&sql.replace("chr(", "char("))), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_names_issued_credentials_on_postgres() {
    let store = store(database()).await;
    let world = World::make(&store, NUMBERS).await;
    let (sql, expected) = append_notes(&store, &world).await;
    assert_eq!(query(database(), &sql).lines().collect::<Vec<_>>(), expected);
}

/// Creates a world with some rows of each kind that integrations have, and deletes them.
async fn delete_all<S>(shared: &Arc<S>) -> World
where
    S: RowStore + 'static,
{
    let world = World::make(shared, NUMBERS + 1).await;
    let found = world.integration(shared).await;
    world.operate(shared, &Principal::Operator, world.rotate(&found)).await.unwrap();
    world.save_activated(shared).await;
    let principal = world.activator(&world.integration(shared).await);
    for _ in 0..3 {
        shared.fetch_credentials(world.take(&principal)).await.unwrap();
    }
    assert!(world.set_frozen(shared, &Principal::Operator, true).await);
    world.operate(shared, &Principal::Operator, DeleteOrganization(world.organization)).await.unwrap();
    let erase = DeleteExpired(Expired::Erasures);
    while world.operate(shared, &Principal::Operator, erase).await.unwrap() > 0 {}
    world
}

fn rows_of(world: &World, table: &str) -> String {
    format!("SELECT count(*) || '' FROM {table} WHERE organization_id = '{}'", world.organization)
}

#[tokio::test]
async fn deleted_organization_leaves_only_audit_rows_on_sqlite() {
    let (scratch, store) = on_sqlite().await;
    let world = delete_all(&store).await;
    let tables = column(
        &scratch,
        "SELECT t.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c \
         WHERE t.type = 'table' AND c.name = 'organization_id'",
    );
    assert!(tables.len() > 18, "{tables:?}");
    for table in tables {
        let rows = column(&scratch, &with_blobs(&rows_of(&world, &table)));
        assert_eq!(rows == ["0"], table != "audit", "{rows:?} in {table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_organization_leaves_only_audit_rows_on_postgres() {
    let store = store(database()).await;
    let world = delete_all(&store).await;
    let tables = query(
        database(),
        "SELECT table_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND column_name = 'organization_id'",
    );
    assert!(tables.lines().count() > 18, "{tables}");
    for table in tables.lines() {
        let rows = query(database(), &rows_of(&world, table));
        assert_eq!(rows == "0", table != "audit", "{rows} in {table}");
    }
}
