//! What a restore revokes, on both databases. Each case has a separate database.

use crate::support;

use std::sync::Arc;
use support::postgres::query;
use support::sqlite::Scratch;
use support::subject::{OnPostgres, OnSqlite};
use uuid::Uuid;
use vault_core::port::KeyedDigester as _;
use vault_diesel::{CopyError, OpenError, SchemaState, SqliteKey, check_file, copy_file};
use vault_testkit::contract::{restore, run};
use vault_testkit::crypto::FakeDigester;
use vault_testkit::memory::MemoryStore;
use zeroize::Zeroizing;

/// Returns the statement for the row of the instance, whose key is the one that the cases use for digests.
fn instance(id: impl Fn(&Uuid) -> String, blob: &str) -> String {
    let (key, other) = (id(FakeDigester::default().active_key().as_uuid()), id(&Uuid::from_u128(1)));
    format!("INSERT INTO instance VALUES (1, {other}, {other}, {key}, {blob}, {blob}, 0, 0)")
}

async fn sqlite() -> OnSqlite {
    let subject = OnSqlite::new().await;
    subject.scratch.bare().execute(&instance(|id| format!("x'{}'", id.simple()), "x'00'"), []).unwrap();
    subject
}

async fn postgres() -> OnPostgres {
    let subject = OnPostgres::alone().await;
    query(&subject.address, &instance(|id| format!("'{id}'"), "''"));
    subject
}

#[tokio::test]
async fn backup_copy_is_one_verified_file_under_its_own_key() {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    let key = || SqliteKey::from_bytes(Zeroizing::new([7; 32]));
    let copy = scratch.path().with_file_name("it's a copy");
    let rows = store.copy_to(&copy, &key()).unwrap();
    let content = check_file(&copy, key()).unwrap();
    assert_eq!(content.rows, rows);
    assert!(rows.iter().any(|table| table.table == "decoys" && table.rows > 1_000), "{rows:?}");
    assert_eq!((content.schema, content.instance), (SchemaState::Current, None));
    assert!(matches!(store.copy_to(&copy, &key()), Err(CopyError::Create { .. })), "it is never overwritten");
    let same = SqliteKey::from_bytes(Zeroizing::new(support::sqlite::KEY));
    assert!(matches!(check_file(&copy, same), Err(CopyError::Open(OpenError::Key(_)))));

    let again = scratch.path().with_file_name("again");
    assert_eq!(copy_file(&copy, key(), &again, &SqliteKey::from_bytes(Zeroizing::new([8; 32]))).unwrap(), rows);
    let mut bytes = std::fs::read(&copy).unwrap();
    for place in [5_000, bytes.len() - 1] {
        bytes[place] ^= 1;
        std::fs::write(&copy, &bytes).unwrap();
        assert!(matches!(check_file(&copy, key()), Err(CopyError::Damaged { .. })), "byte {place}");
        bytes[place] ^= 1;
    }
    std::fs::write(&copy, &bytes[..bytes.len() - 4_096]).unwrap();
    assert!(check_file(&copy, key()).is_err(), "truncated");

    scratch.bare().execute("INSERT INTO schema_versions VALUES ('9999_later', 0)", []).unwrap();
    let newer = scratch.path().with_file_name("newer");
    store.copy_to(&newer, &key()).unwrap();
    assert_eq!(check_file(&newer, key()).unwrap().schema, SchemaState::Newer("9999_later".to_owned()));
}

#[test]
fn finished_restore_revokes_earlier_rights_in_memory() {
    run(async { Arc::new(MemoryStore::new()) }, async |store: &_| {
        restore::finished_restore_revokes_earlier_rights(store).await
    });
}

#[test]
fn finished_restore_revokes_earlier_rights_on_sqlite() {
    run(sqlite(), async |store: &_| restore::finished_restore_revokes_earlier_rights(store).await);
}

#[test]
fn finished_restore_revokes_earlier_rights_on_postgres() {
    run(postgres(), async |store: &_| restore::finished_restore_revokes_earlier_rights(store).await);
}

/// Returns the issuers by name with their URLs, and the versions of the receivers by ID.
fn operators(connection: &rusqlite::Connection) -> (Vec<String>, Vec<i64>) {
    let issuers = "SELECT name || ' ' || url FROM issuers ORDER BY name";
    let mut issuers = connection.prepare(issuers).unwrap();
    let issuers = issuers.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut receivers = connection.prepare("SELECT version FROM entities WHERE kind = 'receiver' ORDER BY id").unwrap();
    (issuers, receivers.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect())
}

/// A restore does not bring back issuers and receivers that were removed or changed after the backup.
#[tokio::test]
async fn restore_does_not_revive_issuers_or_receivers() {
    let issuer = |name: &str, url: &str| {
        // The id of an issuer has 16 bytes.
        let id = format!("CAST('{name:0<16}' AS BLOB)");
        format!("INSERT INTO issuers VALUES ({id}, '{name}', '{url}', 'pasted', '', '', '', 0, '', 0, 0, '', x'00')")
    };
    let receiver = |id: u8, version: i64| {
        format!(
            "INSERT INTO entities VALUES (zeroblob(16), 'receiver', x'{}', {version}, NULL, NULL, x'00')",
            format!("{id:02x}").repeat(16)
        )
    };
    for same_keys in [true, false] {
        let scratch = Scratch::new();
        let store = scratch.migrated().await;
        let key = || SqliteKey::from_bytes(Zeroizing::new(support::sqlite::KEY));
        let rows = [issuer("kept", "a"), issuer("removed", "a"), receiver(1, 1), receiver(2, 1)];
        rows.iter().for_each(|row| assert_eq!(scratch.bare().execute(row, []).unwrap(), 1));
        let newer = scratch.path().with_file_name("newer");
        store.copy_to(&newer, &key()).unwrap();
        // The newer database has removed or changed the rows that the backup still contains.
        for row in [issuer("changed", "old"), receiver(3, 1), receiver(4, 1)] {
            scratch.bare().execute(&row, []).unwrap();
        }
        let later = Scratch::new();
        std::fs::copy(&newer, later.path()).unwrap();
        for change in [
            "DELETE FROM issuers WHERE name = 'removed'".to_owned(),
            "DELETE FROM entities WHERE id = x'02020202020202020202020202020202'".to_owned(),
            issuer("changed", "new"),
            receiver(3, 2),
        ] {
            assert_eq!(later.bare().execute(&change, []).unwrap(), 1, "{change}");
        }
        let replayed = vault_diesel::replay(&store, &later.path(), &key(), same_keys).unwrap();
        let shown = operators(&scratch.bare());
        match same_keys {
            true => assert_eq!(shown, (vec!["changed new".to_owned(), "kept a".to_owned()], vec![1, 2])),
            false => assert_eq!(shown, (vec!["kept a".to_owned()], vec![1])),
        }
        let (issuers, receivers) = (replayed.stale_issuers, replayed.stale_receivers.len());
        match same_keys {
            true => assert_eq!((issuers, receivers), (vec!["removed".to_owned()], 2)),
            false => assert_eq!((issuers, receivers), (vec!["changed".to_owned(), "removed".to_owned()], 3)),
        }
    }
}
