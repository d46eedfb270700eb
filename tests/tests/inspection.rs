//! Integrity checks: every row that was modified with SQL is reported.

use serde_json::{Value, json};
use vault_tests::binary::Run;
use vault_tests::browser::eventually;
use vault_tests::issuer::SigningKey;

use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::{Account, Database, Session, Vault, on_both_databases};

/// Returns the findings of `doctor --deep`.
#[track_caller]
fn findings(vault: &Vault) -> Vec<String> {
    let run = vault.run(&["doctor", "--deep", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    let found: Vec<_> =
        document["findings"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect();
    let checks = document["checks"].as_array().unwrap();
    let failed =
        checks.iter().any(|it| ["rows", "audit"].iter().any(|name| it["check"] == *name) && it["result"] == "failed");
    assert_eq!(failed, !found.is_empty(), "{document}");
    assert_eq!(run.status == Some(1), !found.is_empty(), "{document}\n{}", run.stderr);
    found
}

/// Asserts that there is exactly one finding, about row `id` and with the text `flawed`.
#[track_caller]
fn finds(vault: &Vault, id: &str, flawed: &str) {
    let found = findings(vault);
    assert!(found.len() == 1 && found[0].contains(id) && found[0].contains(flawed), "{id} {flawed}: {found:?}");
}

/// Uses all operations on credentials, accounts and integrations, so that all kinds of rows exist.
pub(crate) fn live(vault: &Vault, admin: &Session) -> (Account, String) {
    let kept = admin.save(&small("imports", 1));
    admin.replace(&kept, &small("imports", 2), false).expect(201);
    admin.replace(&kept, &small("imports", 3), true).expect(201);
    admin.promote(&kept, 3).expect(200);
    admin.describe(&kept, &json!({"labels": {"team": "ingest", "stage": "test"}})).expect(200);
    let gone = admin.save(&small("exports", 4));
    assert_eq!(admin.delete(&gone).status, 204);
    let colleague = vault.account("Acme", "viewer");
    vault.run(&["account", "set-role", "--email", &colleague.email, "--role", "editor"]).done();
    admin.invite("new@example.com", "viewer").expect(201);
    for (command, more) in [
        ("create", &["--namespace", "imports"][..]),
        ("rotate", &[]),
        ("set", &["--state", "disabled"]),
        ("set", &["--state", "enabled"]),
    ] {
        vault.run(&[&["integration", command, "--org", "Acme", "--name", "nightly"], more].concat()).done();
    }
    (colleague, kept)
}

fn unchanged_vault_passes_integrity_check(database: Database) {
    let vault = Vault::start(database);
    let admin = vault.admin_session();
    live(&vault, &admin);
    // A user who must enrol again has an invitation that is not indexed by address.
    admin.re_enrol(&vault.account("Acme", "viewer").id).expect(201);
    assert_eq!(findings(&vault), [""; 0]);
    let said = vault.run(&["doctor", "--deep"]).done().stdout;
    assert!(said.contains("rows can be decrypted and match the audit log"), "{said}");
    // Key rotation does not change the recorded states.
    vault.run(&["key", "rotate", "--all"]).done();
    Run::of(&mut vault.owner_command(&["key", "rotate", "--instance"])).done();
    assert_eq!(findings(&vault), [""; 0]);
}

on_both_databases!(unchanged_vault_passes_integrity_check);

/// A later change of an account does not hide that an earlier row was put back.
#[test]
fn later_changes_hide_no_restored_row() {
    let vault = Vault::start(Database::Postgres);
    let sql = Sql::of(&vault);
    let colleague = vault.account("Acme", "admin");
    let account = format!("entities WHERE kind = 'account' AND id = '{}'", colleague.id);
    sql.run(&format!("CREATE TABLE kept AS SELECT * FROM {account}"));
    vault.run(&["account", "set-role", "--email", &colleague.email, "--role", "viewer"]).done();
    sql.run(&format!("DELETE FROM {account}; INSERT INTO entities SELECT * FROM kept"));
    for _ in 0..2 {
        let session = colleague.log_in(&vault.client());
        session.post_account("passcode", &colleague.proof());
        vault.run(&["account", "set", "--state", "disabled", "--email", &colleague.email]).refused();
    }
    assert!(!findings(&vault).is_empty(), "the account is an admin again");
}

#[test]
fn restored_rows_are_detected() {
    let vault = Vault::start(Database::Postgres);
    let (admin, sql) = (vault.admin_session(), Sql::of(&vault));
    let (colleague, credential) = live(&vault, &admin);
    let account = colleague.id.clone();
    let integration = sql.value("SELECT id FROM entities WHERE kind = 'integration'");
    let keep =
        |table: &str, id: &str| sql.run(&format!("CREATE TABLE kept AS SELECT * FROM {table} WHERE id = '{id}'"));
    let put_back = |table: &str, id: &str| {
        let columns = sql.value(&format!(
            "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns WHERE table_name = '{table}'"
        ));
        sql.run(&format!(
            "UPDATE {table} t SET ({columns}) = (SELECT {columns} FROM kept) WHERE id = '{id}'; \
             INSERT INTO {table} ({columns}) SELECT {columns} FROM kept WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE id = '{id}'); \
             DROP TABLE kept"
        ))
    };

    // An earlier role of an account.
    let role = format!("entities WHERE kind = 'account' AND id = '{account}'");
    sql.run(&format!("CREATE TABLE kept AS SELECT * FROM {role}"));
    vault.run(&["account", "set-role", "--email", &colleague.email, "--role", "viewer"]).done();
    assert_eq!(findings(&vault), [""; 0]);
    sql.run(&format!("CREATE TABLE changed AS SELECT * FROM {role}"));
    let put_role_back = |from: &str| {
        sql.run(&format!("DELETE FROM {role}; INSERT INTO entities SELECT * FROM {from}; DROP TABLE {from}"))
    };
    put_role_back("kept");
    let found = findings(&vault);
    assert!(found.iter().any(|it| it.contains("differs from its state in audit entry")), "{found:?}");
    put_role_back("changed");
    assert_eq!(findings(&vault), [""; 0]);

    // A disabled integration, then a deleted one.
    keep("entities", &integration);
    vault.run(&["integration", "set", "--state", "disabled", "--org", "Acme", "--name", "nightly"]).done();
    put_back("entities", &integration);
    finds(&vault, &integration, "differs from its state in audit entry");
    keep("entities", &integration);
    vault.run(&["integration", "delete", "--org", "Acme", "--name", "nightly", "--yes"]).done();
    assert_eq!(findings(&vault), [""; 0]);
    put_back("entities", &integration);
    finds(&vault, &integration, "was removed according to audit entry");
    sql.run(&format!("DELETE FROM entities WHERE id = '{integration}'"));

    // A disabled organization, a frozen namespace and a thawed one.
    vault.run(&["org", "create", "Closed"]).done();
    let closed = sql.value("SELECT id FROM global_lookups WHERE value = 'closed'");
    keep("entities", &closed);
    vault.run(&["org", "set", "--state", "disabled", "Closed"]).done();
    assert_eq!(findings(&vault), [""; 0]);
    sql.run(&format!("CREATE TABLE disabled AS SELECT * FROM entities WHERE id = '{closed}'"));
    put_back("entities", &closed);
    let led_by = |state: &str| sql.run(&format!("UPDATE lookups SET value = '{state}' WHERE id = '{closed}'"));
    led_by("active");
    finds(&vault, &closed, "differs from its state in audit entry");
    // The operator does not sign it again.
    let refused = vault.run(&["org", "set", "--state", "disabled", "Closed"]);
    assert!(refused.stderr.contains("fails its integrity check"), "{}", refused.stderr);
    sql.run("ALTER TABLE disabled RENAME TO kept");
    put_back("entities", &closed);
    led_by("disabled");
    vault.run(&["org", "set", "--state", "enabled", "Closed"]).done();
    vault.run(&["namespace", "freeze", "imports", "--org", "Acme"]).done();
    assert_eq!(findings(&vault), [""; 0]);
    let (of, by) = ("kind = 'namespace'", "name IN ('namespace', 'frozen_namespace')");
    sql.run(&format!("CREATE TABLE led AS SELECT * FROM lookups WHERE {by}; DELETE FROM lookups WHERE {by}"));
    sql.run(&format!("CREATE TABLE frozen AS SELECT * FROM entities WHERE {of}; DELETE FROM entities WHERE {of}"));
    finds(&vault, "row imports of table entities", "exists according to audit entry");
    sql.run("INSERT INTO entities SELECT * FROM frozen; INSERT INTO lookups SELECT * FROM led");
    vault.run(&["namespace", "thaw", "imports", "--org", "Acme"]).done();
    assert_eq!(findings(&vault), [""; 0]);
    let thawed = format!("CREATE TABLE thawed AS SELECT * FROM entities WHERE {of}; DELETE FROM entities WHERE {of}");
    sql.run(&format!("{thawed}; INSERT INTO entities SELECT * FROM frozen"));
    finds(&vault, "row imports of table entities", "differs from its state in audit entry");
    // A state that was put back is never the basis of another one, which would hide it.
    let refused = vault.run(&["namespace", "thaw", "imports", "--org", "Acme"]);
    assert!(refused.stderr.contains("fails its integrity check"), "{}", refused.stderr);
    finds(&vault, "row imports of table entities", "differs from its state in audit entry");
    let thaw = "INSERT INTO entities SELECT * FROM thawed; DROP TABLE frozen; DROP TABLE thawed";
    sql.run(&format!("DELETE FROM entities WHERE {of}; {thaw}"));
    sql.run("INSERT INTO lookups SELECT * FROM led WHERE name = 'frozen_namespace'; DROP TABLE led");
    finds(&vault, "row imports of table lookups", "no object lists this value");
    sql.run("DELETE FROM lookups WHERE name = 'frozen_namespace'");

    // Earlier labels of a credential in an otherwise unchanged row.
    keep("credentials", &credential);
    admin.describe(&credential, &json!({"description": "other"})).expect(200);
    sql.run(&format!("CREATE TABLE now_kept AS SELECT * FROM credentials WHERE id = '{credential}'"));
    let card_of = |rows: &str| {
        sql.run(&format!("UPDATE credentials SET card = (SELECT card FROM {rows}) WHERE id = '{credential}'"));
    };
    card_of("kept");
    finds(&vault, &credential, "card: not authentic");
    card_of("now_kept");
    sql.run("DROP TABLE kept; DROP TABLE now_kept");
    assert_eq!(findings(&vault), [""; 0]);

    // A whole credential row with its earlier labels.
    keep("credentials", &credential);
    admin.describe(&credential, &json!({"description": "new"})).expect(200);
    assert_eq!(findings(&vault), [""; 0]);
    sql.run(&format!("CREATE TABLE described AS SELECT * FROM credentials WHERE id = '{credential}'"));
    put_back("credentials", &credential);
    finds(&vault, &credential, "differs from its state in audit entry");
    admin.describe(&credential, &json!({"description": "newer"})).expect(500);
    finds(&vault, &credential, "differs from its state in audit entry");
    sql.run("ALTER TABLE described RENAME TO kept");
    put_back("credentials", &credential);
    admin.describe(&credential, &json!({"description": "newest"})).expect(200);
    assert_eq!(findings(&vault), [""; 0]);

    // An audit entry that is modified to match the restored state.
    let newest = format!(
        "(SELECT id FROM audit WHERE subject = 'account:{account}' AND changed_rows IS NOT NULL ORDER BY id DESC LIMIT 1)"
    );
    sql.run(&format!("UPDATE audit SET changed_rows = 'account gone' WHERE id = {newest}"));
    let found = findings(&vault);
    assert!(
        found.iter().any(|it| it.contains(&account) && it.contains("has an audit entry that was modified")),
        "{found:?}"
    );
    assert!(found.len() == 2, "the audit itself says so, too: {found:?}");
}

#[test]
fn issuers_receivers_and_rows_without_entries_are_found() {
    let vault = Vault::start(Database::Postgres);
    let (admin, sql) = (vault.admin_session(), Sql::of(&vault));
    let of = "kind NOT IN ('organization', 'account', 'account_secrets')";
    let keep = || sql.run(&format!("CREATE TABLE kept AS SELECT * FROM entities WHERE {of}"));
    let put_back = || sql.run(&format!("DELETE FROM entities WHERE {of}; INSERT INTO entities SELECT * FROM kept"));
    let forget = || sql.run(&format!("DELETE FROM entities WHERE {of}; DROP TABLE kept"));
    let request = json!({"kind": "webhook", "url": "https://hooks.example"});
    let added = admin.call("POST", "/v1/receivers").json(&request).send().expect(201).json();
    let receiver = added["id"].as_str().unwrap();
    let path = format!("/v1/receivers/{receiver}");
    keep();
    admin.call("PATCH", &path).json(&json!({"state": "disabled"})).send().expect(200);
    assert_eq!(findings(&vault), [""; 0]);
    put_back();
    finds(&vault, receiver, "differs from its state in audit entry");
    admin.call("DELETE", &path).send().expect(204);
    assert_eq!(findings(&vault), [""; 0]);
    put_back();
    finds(&vault, receiver, "was removed according to audit entry");
    forget();

    let keys = vault.scratch("keys.json");
    std::fs::write(&keys, json!({"keys": [SigningKey::new("first").public()]}).to_string()).unwrap();
    let add = ["issuer", "add", "own", "--issuer", "https://issuer.example", "--jwks-file", keys.to_str().unwrap()];
    vault.run(&add).done();
    assert_eq!(findings(&vault), [""; 0]);
    keep();
    let issuer = sql.value("SELECT id FROM entities WHERE kind = 'issuer'");
    vault.run(&["issuer", "remove", "own"]).done();
    put_back();
    finds(&vault, &issuer, "was removed according to audit entry");
    forget();

    // Before a server removes old entries, it records the states of rows again. A row that is in none was put back later.
    vault.run(&["integration", "create", "--org", "Acme", "--name", "nightly", "--namespace", "imports"]).done();
    let integration = sql.value("SELECT id FROM entities WHERE kind = 'integration'");
    sql.run(&format!("DELETE FROM audit WHERE subject = 'integration:{integration}'"));
    let found = findings(&vault);
    let is_found = |it: &String| it.contains(&integration) && it.contains("is in no audit entry");
    assert!(found.iter().any(is_found), "{found:?}");
}

#[test]
fn rows_that_were_changed_swapped_or_copied_are_found() {
    let vault = Vault::start(Database::Postgres);
    let (admin, sql) = (vault.admin_session(), Sql::of(&vault));
    let (colleague, credential) = live(&vault, &admin);
    let other = admin.save(&small("imports", 9));
    let account = colleague.id.clone();
    let organization = sql.value("SELECT id FROM global_lookups WHERE value = 'acme'");
    let flip = |column: &str| {
        format!("{column} = set_byte({column}, length({column}) - 1, get_byte({column}, length({column}) - 1) # 1)")
    };
    let of = |table: &str, id: &str, set: &str| format!("UPDATE {table} SET {set} WHERE id = '{id}'");
    let of_kind =
        |kind: &str, set: &str| format!("UPDATE entities SET {set} WHERE kind = '{kind}' AND id = '{account}'");
    let version = |number: i64, set: &str| {
        format!("UPDATE credential_secrets SET {set} WHERE id = '{credential}' AND version = {number}")
    };
    let integration = sql.value("SELECT id FROM entities WHERE kind = 'integration'");
    let cases: Vec<(String, &str, &str)> = vec![
        (of_kind("account", &flip("sealed")), &account, "cannot be read"),
        (of_kind("account_secrets", &flip("sealed")), &account, "cannot be read"),
        (
            format!("DELETE FROM entities WHERE kind = 'account_secrets' AND id = '{account}'"),
            &account,
            "cannot be read",
        ),
        (format!("DELETE FROM entities WHERE kind = 'account' AND id = '{account}'"), &account, "cannot be read"),
        (of("global_lookups", &account, "value = 'other@example.com'"), &account, "cannot be looked up"),
        (of("entities", &integration, &flip("sealed")), &integration, "cannot be read"),
        (of("entities", &integration, "due_at = 1"), &integration, "cannot be read"),
        (of("entities", &integration, "version = version + 1"), &integration, "cannot be read"),
        (of("lookups", &integration, "value = 'other'"), &integration, "cannot be looked up"),
        (of("lookups", &organization, "value = 'disabled'"), &organization, "cannot be looked up"),
        (of("global_lookups", &integration, "value = 'other ' || value"), &integration, "cannot be looked up"),
        (
            "UPDATE entities SET due_at = due_at + 60000 WHERE kind = 'invitation'".to_owned(),
            "",
            "its due time differs from the document",
        ),
        (of("credentials", &credential, &flip("card")), &credential, "card: not authentic"),
        (of("credentials", &credential, "vend = 'short'"), &credential, "card: differs from the columns"),
        (of("credentials", &credential, "namespace = 'exports'"), &credential, "card: differs from the columns"),
        (of("credentials", &credential, "type = 'direct-link'"), &credential, "card: differs from the columns"),
        (of("credentials", &credential, "expires_at = 1"), &credential, "card: differs from the columns"),
        (of("credentials", &credential, "revision = revision + 1"), &credential, "card: not authentic"),
        // The previous version is current again.
        (of("credentials", &credential, "version = 2"), &credential, "card: differs from the columns"),
        (of("credential_secrets", &credential, "destroy_at = destroy_at + 1"), &credential, "its versions differ"),
        (version(2, &flip("data")), &credential, "data: not authentic"),
        (version(3, &flip("data")), &credential, "data: not authentic"),
        (version(3, &flip("data_key")), &credential, "data_key: not authentic"),
        (
            format!(
                "UPDATE credential_secrets t SET data = o.data, data_key = o.data_key FROM credential_secrets o \
                 WHERE t.id = '{credential}' AND t.version = 3 AND o.id = '{other}'"
            ),
            &credential,
            "cannot be decrypted",
        ),
        (format!("DELETE FROM credential_secrets WHERE id = '{credential}'"), &credential, "cannot be read"),
        (
            format!("UPDATE credential_labels SET id = '{other}' WHERE id = '{credential}'"),
            "",
            "is indexed under other labels",
        ),
        (
            format!(
                "UPDATE credential_labels SET label = {} WHERE id = '{credential}' AND label = (SELECT label FROM credential_labels ORDER BY label LIMIT 1)",
                "set_byte(label, 0, get_byte(label, 0) # 1)"
            ),
            &credential,
            "is indexed under other labels",
        ),
        (of("entities", &organization, &flip("sealed")), &organization, "cannot be read"),
    ];
    assert_eq!(findings(&vault), [""; 0]);
    sql.run("CREATE SCHEMA kept");
    let tables = [
        "entities",
        "lookups",
        "global_lookups",
        "credentials",
        "credential_secrets",
        "credential_labels",
        "organizations",
    ];
    for table in tables {
        sql.run(&format!("CREATE TABLE kept.{table} AS SELECT * FROM {table}"));
    }
    for (statement, id, flawed) in cases {
        sql.run(&statement);
        let found = findings(&vault);
        assert!(found.iter().any(|it| it.contains(id) && it.contains(flawed)), "{statement}: {found:?}");
        sql.run("SET session_replication_role = replica");
        for table in tables {
            sql.run(&format!(
                "SET session_replication_role = replica; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept.{table}"
            ));
        }
        assert_eq!(findings(&vault), [""; 0], "put right: {statement}");
    }
}

/// ID of an organization that does not exist.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// Rows without an organization do not hide the rows after them.
#[test]
fn rows_without_organization_hide_no_others() {
    let vault = Vault::start(Database::Postgres);
    let (admin, sql) = (vault.admin_session(), Sql::of(&vault));
    let (colleague, credential) = live(&vault, &admin);
    let copy = |table: &str, id: &str, column: &str| {
        let columns = sql.value(&format!(
            "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns \
             WHERE table_name = '{table}' AND table_schema = 'public'"
        ));
        let changed = columns.replace(column, &format!("'{NOBODY}'"));
        sql.run(&format!(
            "SET session_replication_role = replica; \
             INSERT INTO {table} ({columns}) SELECT {changed} FROM {table} WHERE id = '{id}'"
        ));
    };
    copy("credentials", &credential, "organization_id");
    sql.run(&format!(
        "SET session_replication_role = replica; \
         UPDATE entities SET version = version + 1 WHERE kind = 'account' AND id = '{}'; \
         UPDATE credentials SET vend = 'short' WHERE id = '{credential}' AND organization_id <> '{NOBODY}'",
        colleague.id
    ));
    let found = findings(&vault);
    let has = |id: &str, flawed: &str| found.iter().any(|it| it.contains(id) && it.contains(flawed));
    assert!(has(&credential, "cannot be read"), "{found:?}");
    assert!(has(&credential, "differs from the columns"), "{found:?}");
    assert!(has(&colleague.id, "cannot be read"), "{found:?}");
}

/// The server's background check reports the modification.
#[test]
fn server_runs_periodic_integrity_checks() {
    let mut vault = Vault::init(Database::Postgres);
    vault.serve();
    let admin = vault.admin_session();
    let (colleague, _) = live(&vault, &admin);
    let account = colleague.id.clone();
    vault.stop();
    let url = vault.url().to_owned();
    let sql = Sql::at(&url);
    let before = vault.log().len();
    vault.serve();
    eventually("the inspection", || vault.log()[before..].contains("inspected the stored rows: no findings"));
    assert!(vault.metric("orgvault_inspected_rows_total") > 0);
    assert_eq!(vault.metric("orgvault_inspection_findings"), 0);
    vault.stop();
    sql.run(&format!("UPDATE entities SET version = version + 1 WHERE kind = 'account' AND id = '{account}'"));
    vault.serve();
    eventually("the finding", || vault.log().contains("some were changed outside OrgVault or are damaged"));
    assert_eq!(vault.metric("orgvault_inspection_findings"), 1);
    assert!(vault.log().contains(&format!("row {account} of table entities cannot be read")));
}
