//! Integrity checks: every row that was modified with SQL is reported.

use serde_json::{Value, json};
use vault_tests::binary::Run;
use vault_tests::browser::eventually;
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

/// Findings name the table and ID of a row. Rows without an organization do not hide the rows after them.
#[test]
fn rows_without_organization_hide_no_others() {
    let vault = Vault::start(Database::Postgres);
    let (admin, sql) = (vault.admin_session(), Sql::of(&vault));
    let (colleague, credential) = live(&vault, &admin);
    sql.run(&format!(
        "SET session_replication_role = replica; \
         UPDATE entities SET version = version + 1 WHERE kind = 'account' AND id = '{}'; \
         CREATE TABLE kept AS SELECT * FROM credentials WHERE id = '{credential}'; \
         UPDATE credentials SET vend = 'short' WHERE id = '{credential}'; \
         UPDATE kept SET organization_id = '00000000-0000-4000-8000-000000000000'; \
         INSERT INTO credentials SELECT * FROM kept",
        colleague.id
    ));
    let found = findings(&vault);
    let has = |id: &str, flawed: &str| found.iter().any(|it| it.contains(id) && it.contains(flawed));
    assert!(has(&credential, "cannot be read"), "{found:?}");
    assert!(has(&credential, "differs from the columns"), "{found:?}");
    assert!(has(&format!("row {} of table entities", colleague.id), "cannot be read"), "{found:?}");
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
