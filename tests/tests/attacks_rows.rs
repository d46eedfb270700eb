//! Attacks with SQL write access to a running server, and what rows contain.

use std::collections::HashSet;
use vault_tests::browser::eventually;
use vault_tests::samples::{every_type, s3, small};
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault};

/// A destroyed key of an organization seals nothing again, although its document is put back.
#[test]
fn a63_destroyed_key_stays_destroyed() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    session.save(&small("a", 1));
    sql.run("CREATE TABLE stolen AS SELECT * FROM entities WHERE kind = 'organization'");
    vault.run(&["key", "rotate", "--organization", "Acme"]).done();
    session.save(&small("a", 2));
    sql.run("UPDATE entities o SET sealed = s.sealed, version = s.version FROM stolen s WHERE o.id = s.id AND o.kind = s.kind");
    // Also in another process, which has not loaded the keys before.
    let replica = vault.replica();
    for session in [&session, &session.on(&replica.client())] {
        assert!(session.try_save(&small("a", 3)).status >= 500);
    }
    assert_eq!(vault.run(&["doctor", "--deep"]).status, Some(1));
}

/// An entry that never reaches the database, or is removed before its checkpoint, is reported by the server.
#[test]
fn a63_hidden_audit_entry_is_reported() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    let id = session.save(&small("a", 1));
    sql.run(
        "CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
         CREATE TRIGGER hide BEFORE INSERT ON audit FOR EACH ROW WHEN (NEW.action = 'credential.deleted') \
         EXECUTE FUNCTION hide()",
    );
    session.delete(&id).expect(204);
    // The integrity check may report the missing credential before.
    eventually("the missing entry is reported", || vault.log().contains("\"table\":\"audit\""));
}

#[test]
fn a68_nonces_do_not_repeat_under_one_key() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    for number in 0..100 {
        session.save(&small("a", number));
        session.save(&small("a", 0));
    }
    for sample in every_type() {
        session.save(&sample.request);
    }
    let columns = [
        ("credentials", "card"),
        ("credential_secrets", "data_key"),
        ("credential_secrets", "data"),
        ("entities", "sealed"),
    ];
    let (mut seen, mut messages, mut contents) = (HashSet::new(), 0, HashSet::new());
    for (table, column) in columns {
        for row in sql.run(&format!("SELECT encode({column}, 'hex') FROM {table}")) {
            let blob = hex::decode(&row[0]).unwrap();
            assert!(matches!(blob[..2], [1, 1 | 2]), "{table}.{column}: version and algorithm");
            assert!(seen.insert(blob[2..30].to_vec()), "{table}.{column}: a nonce twice under one key");
            assert!(contents.insert(blob[30..].to_vec()), "{table}.{column}: equal content shows");
            messages += 1;
        }
    }
    assert!(messages > 600, "{messages}");
    // Equal data is encrypted with different data keys. Lengths reveal only steps of 256 bytes.
    let lengths = sql.run("SELECT DISTINCT length(data) FROM credential_secrets WHERE id IN (SELECT id FROM credentials WHERE namespace = 'a')");
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

#[test]
fn a70_deleted_credential_leaves_no_row() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    let kept = session.save(&small("a", 1));
    let id = session.save(&s3().request);
    let wrapped = sql.value(&format!("SELECT encode(data_key, 'hex') FROM credential_secrets WHERE id = '{id}'"));
    session.delete(&id).expect(204);
    session.show(&id).problem("not-found");
    for row in sql.everything() {
        assert!(!row[1].contains(&wrapped), "the wrapped key is left in {}", row[0]);
    }
    assert_eq!(sql.value("SELECT count(*) FROM credential_secrets"), "1");
    assert_eq!(session.ids(), [kept]);
    // Deleting an organization deletes all its keys.
    vault.run(&["org", "delete", "--yes", "Acme"]).done();
    for table in [
        "credentials",
        "credential_secrets",
        "entities",
        "global_lookups",
        "sessions",
        "recovery_codes",
        "organizations",
    ] {
        assert_eq!(sql.value(&format!("SELECT count(*) FROM {table}")), "0", "{table}");
    }
}
