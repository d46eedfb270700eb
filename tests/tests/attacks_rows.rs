//! Attacks with SQL write access: modified, copied and damaged rows.

use serde_json::json;
use std::collections::HashSet;
use vault_tests::browser::eventually;
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::samples::{every_type, s3, small};
use vault_tests::sql::Sql;
use vault_tests::{Account, Database, Session, Vault};

/// Asserts that the server fails closed: no content, no crash, and everything else continues to work.
#[track_caller]
fn fails_closed(vault: &Vault, session: &Session, id: &str) {
    let shown = session.show(id);
    let list = session.try_list();
    let listed = match list.status {
        200 => list.json().as_array().unwrap().iter().find(|item| item["id"] == id).cloned(),
        status => {
            assert!(matches!(status, 404 | 500), "{status}");
            None
        }
    };
    let item = match shown.status {
        200 => Some(shown.json()),
        status => {
            assert!(matches!(status, 404 | 500), "{status}");
            None
        }
    };
    for item in [item, listed].into_iter().flatten() {
        assert_eq!((&item["damaged"], item.get("information")), (&json!(true), None), "{item}");
    }
    // Other fields of the list are undamaged and may be shown.
    for text in ["AKIA", "eu-central-1", "acme-imports", "MX4T"] {
        assert!(!shown.text().contains(text), "{}", shown.text());
    }
    assert_eq!(vault.client().get("/livez").send().status, 200);
}

#[test]
fn a62_flipped_byte_prevents_opening() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    let id = session.save(&s3().request);
    let column = format!("card FROM credentials WHERE id = '{id}'");
    let sound = sql.bytes(&format!("SELECT {column}"));
    let put = |bytes: &[u8]| {
        sql.run(&format!("UPDATE credentials SET card = '\\x{}' WHERE id = '{id}'", hex::encode(bytes)));
    };
    // Every byte of the header and the tag, and every eighth of the ciphertext.
    let (head, tag) = (1 + 1 + 16 + 12, sound.len() - 16);
    for at in (0..sound.len()).filter(|&at| at < head || at >= tag || at % 8 == 0) {
        let mut flipped = sound.clone();
        flipped[at] ^= 1 << (at % 8);
        put(&flipped);
        fails_closed(&vault, &session, &id);
    }
    for flawed in
        [&b""[..], &sound[..1], &sound[..head], &sound[..sound.len() - 1], &[&sound[..], b"\0"].concat(), &[0xff; 4096]]
    {
        put(flawed);
        fails_closed(&vault, &session, &id);
    }
    let reported = vault.log().lines().any(|line| line.contains("\"ERROR\"") && line.contains(&id));
    assert!(reported, "the row is reported to operators");
    put(&sound);
    assert_eq!(session.list().len(), 1);

    // The document with the wrapped keys.
    let of_acme = "entities SET sealed = {} WHERE kind = 'organization'";
    let sound = sql.bytes("SELECT sealed FROM entities WHERE kind = 'organization'");
    for at in [0, 1, 2, 18, 30, sound.len() / 2, sound.len() - 1] {
        let mut flipped = sound.clone();
        flipped[at] ^= 0x10;
        sql.run(&format!("UPDATE {}", of_acme.replace("{}", &format!("'\\x{}'", hex::encode(&flipped)))));
        assert!(session.try_save(&small("a", 1)).status >= 500, "{at}");
        assert!(session.try_list().status >= 500, "{at}");
    }
    sql.run(&format!("UPDATE {}", of_acme.replace("{}", &format!("'\\x{}'", hex::encode(&sound)))));
    for column in ["wrapped", "keyring"] {
        let sound = sql.bytes(&format!("SELECT {column} FROM instance"));
        for at in [0, 1, 2, 18, 30, sound.len() - 1] {
            let mut flipped = sound.clone();
            flipped[at] ^= 0x10;
            sql.run(&format!("UPDATE instance SET {column} = '\\x{}'", hex::encode(&flipped)));
            vault.run(&["org", "list"]).refused();
        }
        sql.run(&format!("UPDATE instance SET {column} = '\\x{}'", hex::encode(&sound)));
    }
    assert_eq!(session.on(&vault.replica().client()).list().len(), 1);
    assert!(vault.metric("orgvault_integrity_failures_total") > 0, "operators can watch for it");
}

/// Sealed values are bound to their row: copies decrypt nothing and do not allow a login.
#[test]
fn a63_copied_rows_cannot_log_in() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let attacker = vault.account("Globex", "viewer");
    let copied = |kinds: &str| {
        format!(
            "UPDATE entities v SET sealed = a.sealed FROM entities a \
             WHERE v.id = '{{victim}}' AND a.id = '{{attacker}}' AND v.kind = a.kind AND v.kind IN ({kinds})"
        )
    };
    let statements = [
        // Password and TOTP secret, then the rights, then both.
        copied("'account_secrets'"),
        copied("'account'"),
        copied("'account', 'account_secrets'"),
        "UPDATE entities SET version = version + 1 WHERE id = '{victim}'".to_owned(),
        "UPDATE entities SET sealed = '\\x' WHERE id = '{victim}' AND kind = 'account'".to_owned(),
    ];
    for statement in statements {
        let victim = vault.admin();
        let log_in = |password: &Account| {
            let body =
                json!({"email": victim.email, "password": password.password, "passcode": victim.recovery_code()});
            client.log_in(&body).status
        };
        assert_eq!([log_in(&victim), log_in(&attacker)], [200, 401]);
        sql.run(&statement.replace("{victim}", &victim.id).replace("{attacker}", &attacker.id));
        let [right, foreign] = [log_in(&victim), log_in(&attacker)];
        assert!(matches!(right, 401 | 500), "{statement}: {right}");
        assert!(matches!(foreign, 401 | 500), "{statement}: {foreign}");
    }
    // The attacker's address leads to the victim: the attacker's secrets do not unlock another account.
    let victim = vault.admin();
    sql.run(&format!(
        "UPDATE global_lookups d SET organization_id = v.organization_id, id = v.id FROM global_lookups v \
         WHERE d.id = '{}' AND v.id = '{}'",
        attacker.id, victim.id
    ));
    client.log_in(&attacker.sound_login()).problem("invalid-login");
    assert!(vault.metric("orgvault_integrity_failures_total") > 0, "the failure is counted for operators");
}

#[test]
fn a63_disabled_account_cannot_log_in_after_sql_change() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let account = vault.admin();
    sql.run("CREATE TABLE active AS SELECT * FROM entities WHERE kind = 'account'");
    vault.run(&["account", "set", "--state", "disabled", "--email", &account.email]).done();
    sql.run("DELETE FROM entities WHERE kind = 'account'; INSERT INTO entities SELECT * FROM active");
    vault.run(&["account", "set-role", "--role", "viewer", "--email", &account.email]).refused();
    assert_eq!(vault.run(&["doctor", "--deep"]).status, Some(1));
    let viewer = vault.account("Acme", "viewer");
    sql.run(&format!("UPDATE entities SET version = version + 1 WHERE kind = 'account' AND id = '{}'", viewer.id));
    client.log_in(&viewer.sound_login()).problem("invalid-login");
    // An operator command does not seal planted rows again.
    vault.run(&["account", "unlock", "--email", &viewer.email]);
    for command in [
        &["account", "set-role", "--role", "admin"][..],
        &["account", "set", "--state", "enabled"],
        &["account", "re-enrol"],
    ] {
        vault.run(&[command, &["--email", &viewer.email]].concat()).refused();
    }
}

/// Rows of sessions and recovery codes that were hidden while all were revoked are useless afterwards.
#[test]
fn a63_hidden_sessions_and_recovery_codes_stay_revoked() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let account = vault.admin();
    let keep = |table: &str| sql.run(&format!("CREATE TABLE hidden AS SELECT * FROM {table}"));
    let restore_rows = |table: &str| {
        sql.run(&format!("INSERT INTO {table} SELECT * FROM hidden ON CONFLICT DO NOTHING; DROP TABLE hidden"));
    };
    // A change by the owner keeps only the session that makes it.
    let [own, other] = [0; 2].map(|_| account.log_in(&client));
    keep("sessions");
    own.post_account("recovery-codes", &account.proof()).expect(200);
    restore_rows("sessions");
    assert!(own.is_live() && !other.is_live());
    assert_eq!(sql.value("SELECT count(*) FROM sessions"), "2");
    // Recovery codes of before the change.
    let account = vault.account("Acme", "viewer");
    let session = account.log_in(&client);
    keep("recovery_codes");
    session.post_account("recovery-codes", &account.proof()).expect(200);
    restore_rows("recovery_codes");
    client.log_in(&account.login(&account.recovery_code())).problem("invalid-login");
    // Changes by an operator.
    let account = vault.account("Acme", "viewer");
    let session = account.log_in(&client);
    keep("sessions");
    vault.run(&["account", "set", "--state", "disabled", "--email", &account.email]).done();
    vault.run(&["account", "set", "--state", "enabled", "--email", &account.email]).done();
    restore_rows("sessions");
    assert!(!session.is_live());
    assert!(account.log_in(&client).is_live());
}

#[test]
fn a63_replaced_password_stays_replaced() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let account = vault.admin();
    let session = account.log_in(&client);
    sql.run("CREATE TABLE earlier AS SELECT * FROM entities WHERE kind = 'account_secrets'");
    let mut body = account.proof();
    body["new_password"] = json!("another long sentence");
    session.post_account("password", &body).expect(204);
    sql.run("DELETE FROM entities WHERE kind = 'account_secrets'; INSERT INTO entities SELECT * FROM earlier");
    sql.run("UPDATE attempt_classes SET attempts = 0, latest = NULL");
    let refused = client.log_in(&account.sound_login()).status;
    assert!(matches!(refused, 401 | 500), "{refused}");
    assert_eq!(vault.run(&["doctor", "--deep"]).status, Some(1));
}

/// A command that names an organization does not run in another one.
#[test]
fn a63_swapped_names_are_refused() {
    let vault = Vault::start(Database::Postgres);
    let sql = Sql::of(&vault);
    vault.organization("Acme");
    vault.organization("Globex");
    let create = ["account", "create", "--email", "new@example.com", "--role", "admin", "--json", "--org"];
    let swap = |table: &str, column: &str, one: &str, other: &str| {
        format!(
            "UPDATE {table} SET {column} = CASE {column} WHEN {one} THEN {other} ELSE {one} END WHERE {column} IN ({one}, {other})"
        )
    };
    let [acme, globex] = ["acme", "globex"]
        .map(|name| format!("'{}'::uuid", sql.value(&format!("SELECT id FROM global_lookups WHERE value = '{name}'"))));
    let document = |id: &str| format!("(SELECT sealed FROM entities WHERE id = {id})");
    for statement in [
        swap("global_lookups", "id", &acme, &globex)
            + "; "
            + &swap("global_lookups", "organization_id", &acme, &globex),
        format!("UPDATE entities SET sealed = {} WHERE id = {globex}", document(&acme)),
    ] {
        sql.run(&statement);
        vault.run(&[&create[..], &["Acme"]].concat()).refused();
        vault.run(&["org", "set", "--state", "disabled", "Globex"]).refused();
    }
    let doctor = vault.run(&["doctor", "--deep"]);
    assert!(doctor.status == Some(1) && doctor.stdout.contains("entities"), "{doctor:?}");
}

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

/// Secrets that their owner has not confirmed cannot be exchanged or kept longer.
#[test]
fn a63_unconfirmed_secrets_stay_as_drafted() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql, client) = (vault.admin_session(), Sql::of(&vault), vault.client());
    let invited = session.invite("new@example.com", "viewer").expect(201).json();
    let code = invited["enrolment_code"].as_str().unwrap();
    client.enrol(code, "a password of the attacker").expect(200);
    let drafts = "entities WHERE kind = 'enrolment_draft'";
    sql.run(&format!("CREATE TABLE stolen AS SELECT * FROM {drafts}"));
    let drafted = client.enrol(code, "correct horse battery staple").expect(200).json();
    let put_back = |from: &str| sql.run(&format!("DELETE FROM {drafts}; INSERT INTO entities SELECT * FROM {from}"));
    sql.run(&format!("CREATE TABLE kept AS SELECT * FROM {drafts}"));
    put_back("stolen");
    let person = Account::enrolled("Acme", &invited, &drafted, "correct horse battery staple");
    let passcode = || person.authenticator.code(current_step());
    assert!(client.confirm_enrolment(code, &passcode()).status >= 400);
    put_back("kept");
    client.confirm_enrolment(code, &passcode()).expect(204);

    let viewer = vault.account("Acme", "viewer");
    let own = viewer.log_in(&client);
    let next = own.post_account("passcode", &viewer.proof()).expect(200).json();
    let next = Authenticator::new(next["totp"]["secret"].as_str().unwrap());
    sql.run("UPDATE entities SET version = version + 1, due_at = due_at + 86400000 WHERE kind = 'pending_seed'");
    let confirmation = json!({"passcode": next.code(current_step())});
    assert!(own.post_account("passcode/confirm", &confirmation).status >= 500);
    let doctor = vault.run(&["doctor", "--deep"]);
    assert!(doctor.status == Some(1) && doctor.stdout.contains("entities"), "{doctor:?}");
}

/// The number of a destroyed version is not assigned again, so its data does not open as another version.
#[test]
fn a63_version_numbers_never_repeat() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    let id = session.save(&small("a", 1));
    sql.run("UPDATE credentials SET version = 0");
    fails_closed(&vault, &session, &id);
    assert!(session.replace(&id, &small("a", 2), false).status >= 400);
    assert_eq!(vault.run(&["doctor", "--deep"]).status, Some(1));
}

/// A destroyed version is not restored with its row, and the parts of a version do not open as another one with the
/// same number.
#[test]
fn a63_destroyed_version_stays_destroyed() {
    let vault = Vault::start(Database::Postgres);
    let (session, sql) = (vault.admin_session(), Sql::of(&vault));
    let id = session.save(&small("a", 1));
    sql.run("CREATE TABLE first AS SELECT * FROM credentials; CREATE TABLE first_secret AS SELECT * FROM credential_secrets");
    session.replace(&id, &small("a", 2), false).expect(201);
    sql.run("CREATE TABLE stolen AS SELECT * FROM credential_secrets WHERE version = 1");
    session.destroy_version(&id, 1).expect(204);
    sql.run("INSERT INTO credential_secrets SELECT * FROM stolen");
    assert_eq!(session.versions(&id), [(2, "current".to_owned())]);
    session.promote(&id, 1).expect(404);
    let doctor = vault.run(&["doctor", "--deep"]);
    assert!(doctor.status == Some(1) && doctor.stdout.contains("versions differ from its card"), "{doctor:?}");

    // The whole first state is restored. The service changes nothing in it, so it assigns no number a second time.
    sql.run("DELETE FROM credentials; DELETE FROM credential_secrets");
    sql.run("INSERT INTO credentials SELECT * FROM first; INSERT INTO credential_secrets SELECT * FROM first_secret");
    session.replace(&id, &small("a", 3), false).problem("internal-error");
    session.describe(&id, &json!({"description": "x"})).problem("internal-error");
    assert_eq!(vault.run(&["doctor", "--deep"]).status, Some(1));
}

#[test]
fn a63_credential_moved_elsewhere_does_not_open() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let acme = vault.account("Acme", "admin").log_in(&client);
    let globex = vault.account("Globex", "admin").log_in(&client);
    let theirs = acme.save(&s3().request);
    let mut own = s3().request;
    own["data"] = small("a", 1)["data"].clone();
    let own = globex.save(&own);
    let sound = sql.bytes(&format!("SELECT card FROM credentials WHERE id = '{own}'"));
    let key = sql.value(&format!("SELECT key_id FROM credentials WHERE id = '{own}'"));
    // A card of another organization in the attacker's row, with and without its key's ID.
    for columns in ["card = t.card", "card = t.card, key_id = t.key_id"] {
        sql.run(&format!(
            "UPDATE credentials o SET {columns} FROM credentials t WHERE o.id = '{own}' AND t.id = '{theirs}'"
        ));
        fails_closed(&vault, &globex, &own);
    }
    sql.run(&format!("UPDATE credentials SET card = '\\x{}', key_id = '{key}' WHERE id = '{own}'", hex::encode(sound)));
    globex.show(&own).expect(200);
    // Another type, under which the data would be misinterpreted.
    sql.run(&format!("UPDATE credentials SET type = 'gcs' WHERE id = '{own}'"));
    fails_closed(&vault, &globex, &own);
    // Another credential of the same organization, and an earlier version of the same one.
    let sibling = acme.save(&small("a", 2));
    sql.run(&format!(
        "UPDATE credentials o SET card = t.card FROM credentials t WHERE o.id = '{sibling}' AND t.id = '{theirs}'"
    ));
    fails_closed(&vault, &acme, &sibling);
    sql.run(&format!("DELETE FROM credentials WHERE id = '{sibling}'"));
    sql.run(&format!("UPDATE credentials SET version = 2 WHERE id = '{theirs}'"));
    fails_closed(&vault, &acme, &theirs);
}

#[test]
fn a64_damaged_password_row_is_refused() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let account = vault.admin();
    let sound = sql.bytes("SELECT sealed FROM entities WHERE kind = 'account_secrets'");
    let put = |bytes: &[u8]| {
        sql.run(&format!("UPDATE entities SET sealed = '\\x{}' WHERE kind = 'account_secrets'", hex::encode(bytes)));
    };
    let before = vault.server().resident_bytes();
    for bytes in [&[][..], &[1], &sound[..sound.len() / 2], &[0; 300], &vec![0xff; 100_000]] {
        put(bytes);
        sql.run("UPDATE attempt_classes SET attempts = 0, latest = NULL");
        let body = json!({"email": account.email, "password": account.password, "passcode": "000000"});
        let answer = client.log_in(&body);
        assert!(matches!(answer.status, 401 | 500), "{}", answer.status);
    }
    assert!(vault.server().resident_bytes() < before + (256 << 20), "a row decides how much memory a login takes");
    put(&sound);
    sql.run("UPDATE attempt_classes SET attempts = 0, latest = NULL");
    account.log_in(&client);
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
