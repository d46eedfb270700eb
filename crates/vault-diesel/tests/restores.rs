//! What a restore revokes, on both databases. Each case has a separate database.

use crate::support;

use std::sync::Arc;
use support::sqlite::Scratch;
use support::subject::{OnPostgres, OnSqlite};
use vault_diesel::{CopyError, OpenError, SchemaState, SqliteKey, check_file, copy_file};
use vault_testkit::contract::{restore, run};
use vault_testkit::memory::MemoryStore;
use zeroize::Zeroizing;

#[tokio::test]
async fn backup_copy_is_one_verified_file_under_its_own_key() {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    let key = || SqliteKey::from_bytes(Zeroizing::new([7; 32]));
    let copy = scratch.path().with_file_name("it's a copy");
    let rows = store.copy_to(&copy, &key()).unwrap();
    let content = check_file(&copy, key()).unwrap();
    assert_eq!(content.rows, rows);
    assert!(rows.iter().any(|table| table.table == "account_logins" && table.rows == 1), "{rows:?}");
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
    run(OnSqlite::new(), async |store: &_| restore::finished_restore_revokes_earlier_rights(store).await);
}

#[test]
fn finished_restore_revokes_earlier_rights_on_postgres() {
    run(OnPostgres::alone(), async |store: &_| restore::finished_restore_revokes_earlier_rights(store).await);
}

/// Returns the IDs and versions of the entities of a kind.
fn entities(connection: &rusqlite::Connection, kind: &str) -> Vec<String> {
    let rows =
        format!("SELECT hex(substr(id, 1, 1)) || ' ' || version FROM entities WHERE kind = '{kind}' ORDER BY id");
    let mut rows = connection.prepare(&rows).unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A restore does not bring back issuers and receivers that were removed or changed after the backup.
#[tokio::test]
async fn restore_does_not_revive_issuers_or_receivers() {
    let id = |id: u8| format!("x'{}'", format!("{id:02x}").repeat(16));
    let entity = |kind: &str, number: u8, version: i64| {
        let id = id(number);
        format!("INSERT INTO entities VALUES (zeroblob(16), '{kind}', {id}, {version}, NULL, NULL, x'00')")
    };
    let lookup = |index: &str, value: &str, number: u8| {
        format!("INSERT INTO lookups VALUES (zeroblob(16), '{index}', '{value}', {})", id(number))
    };
    let issuer = |name: &str, number| {
        [entity("issuer", number, 1), entity("issuer_keys", number, 7), lookup("issuer_name", name, number)].join("; ")
    };
    let receiver = |number, version| entity("receiver", number, version);
    for same_keys in [true, false] {
        let scratch = Scratch::new();
        let store = scratch.migrated().await;
        let key = || SqliteKey::from_bytes(Zeroizing::new(support::sqlite::KEY));
        let rows = [issuer("kept", 11), issuer("removed", 12), receiver(1, 1), receiver(2, 1)];
        rows.iter().for_each(|row| scratch.bare().execute_batch(row).unwrap());
        let newer = scratch.path().with_file_name("newer");
        store.copy_to(&newer, &key()).unwrap();
        // The newer database has removed or changed the rows that the backup still contains.
        for row in [issuer("changed", 13), receiver(3, 1), receiver(4, 1)] {
            scratch.bare().execute_batch(&row).unwrap();
        }
        let later = Scratch::new();
        std::fs::copy(&newer, later.path()).unwrap();
        let remove =
            |number| format!("DELETE FROM entities WHERE id = {0}; DELETE FROM lookups WHERE id = {0}", id(number));
        for change in [remove(12), remove(2), issuer("changed", 14), receiver(3, 2)] {
            later.bare().execute_batch(&change).unwrap();
        }
        let replayed = vault_diesel::replay(&store, &later.path(), &key(), same_keys, &[]).unwrap();
        let left = ["issuer", "issuer_keys", "receiver"].map(|kind| entities(&scratch.bare(), kind));
        let lookups: i64 = scratch.bare().query_row("SELECT COUNT(*) FROM lookups", [], |row| row.get(0)).unwrap();
        let (issuers, receivers) = (replayed.stale_issuers, replayed.stale_receivers.len());
        match same_keys {
            true => {
                assert_eq!(left, [vec!["0B 1", "0E 1"], vec!["0B 7", "0E 7"], vec!["01 1", "03 2"]]);
                assert_eq!((issuers, receivers, lookups), (vec!["changed".to_owned(), "removed".to_owned()], 2, 2));
            }
            false => {
                assert_eq!(left, [vec!["0B 1"], vec!["0B 7"], vec!["01 1"]]);
                assert_eq!((issuers, receivers, lookups), (vec!["changed".to_owned(), "removed".to_owned()], 3, 1));
            }
        }
    }
}
