//! The audit: who writes to the database is found out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use std::fs;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault, on_both_databases};

/// A vault without a server, whose audit has several checkpoints, all sealed.
fn stopped(database: Database) -> Vault {
    let mut vault = Vault::start(database);
    let session = vault.admin_session();
    for number in 0..3 {
        session.save(&small("imports", number));
    }
    vault.restart();
    vault.account("Acme", "viewer");
    vault.stop();
    vault.serve();
    vault.stop();
    vault
}

/// What `audit verify` finds, as kind and entry.
fn findings(vault: &Vault) -> Vec<(String, Option<String>)> {
    let run = vault.run(&["audit", "verify", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(document["found"], json!(findings.len()));
    assert_eq!(run.status, Some(i32::from(!findings.is_empty())), "{}", run.stderr);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    findings.iter().map(|finding| (text(&finding["kind"]).unwrap(), text(&finding["entry"]))).collect()
}

fn what_stands_is_verified(database: Database) {
    let vault = stopped(database);
    let document = vault.json(&["audit", "verify"]);
    let entries = document["verified"].as_u64().unwrap();
    assert!(entries >= 8, "{document}");
    assert_eq!((&document["found"], &document["unsealed"]), (&json!(0), &json!(0)), "{document}");
    assert_eq!(document["anchor"], document["newest_checkpoint"]);
    let said = vault.run(&["audit", "verify"]).done().stdout;
    let newest = &document["newest_checkpoint"];
    assert_eq!(
        said,
        format!("Verified {entries} entries in {newest} checkpoints. The anchor knows checkpoint {newest}.\n")
    );
    // What a command writes without a server waits for one.
    vault.organization("Globex");
    assert_eq!(vault.json(&["audit", "verify"])["unsealed"], json!(1));
}

fn a_killed_server_leaves_what_the_next_one_continues(database: Database) {
    let mut vault = Vault::start(database);
    let mut session = vault.admin_session();
    for number in 0..5 {
        session.save(&small("imports", number));
        vault.kill_and_restart();
        session = session.on(&vault.client());
        session.save(&small("exports", number));
    }
    vault.stop();
    let document = vault.json(&["audit", "verify"]);
    assert_eq!((&document["found"], &document["unsealed"]), (&json!(0), &json!(0)), "{document}");
    assert!(document["verified"].as_u64().unwrap() >= 10, "{document}");
}

/// A copy of the data directory, put back: the anchor lies in it too, so it is kept apart.
fn an_older_database_is_refused(database: Database) {
    let mut vault = stopped(database);
    let directory = vault.data_dir();
    match database {
        Database::Sqlite => {
            let older = fs::read(directory.join("orgvault.db")).unwrap();
            vault.serve();
            vault.organization("Globex");
            vault.stop();
            fs::write(directory.join("orgvault.db"), older).unwrap();
        }
        Database::Postgres => {
            let sql = Sql::of(&vault);
            let newest = sql.value("SELECT max(number) FROM audit_checkpoints");
            sql.run(&format!("DELETE FROM audit WHERE checkpoint = {newest}"));
            sql.run(&format!("DELETE FROM audit_checkpoints WHERE number = {newest}"));
        }
    }
    assert_eq!(findings(&vault), [("cut-off".to_owned(), None)]);
    let refused = Server::fail(vault.serve_command());
    let said = refused.refused().stderr;
    assert!(said.contains("was set back to an earlier state") && said.contains("orgvault.anchor"), "{said}");
    // Not even with the flag for new replicas; without the anchor, with it.
    let mut adopting = vault.serve_command();
    adopting.arg("--adopt-anchor");
    Server::fail(adopting).refused();
    fs::remove_file(directory.join("orgvault.anchor")).unwrap();
    let said = Server::fail(vault.serve_command()).refused().stderr;
    assert!(said.contains("--adopt-anchor"), "{said}");
    vault.serve_with(&["--adopt-anchor"]);
    vault.stop();
    assert_eq!(findings(&vault), []);
    assert!(directory.join("orgvault.anchor").exists());
}

on_both_databases!(
    what_stands_is_verified,
    a_killed_server_leaves_what_the_next_one_continues,
    an_older_database_is_refused,
);

#[test]
fn a_foreign_or_damaged_anchor_is_refused() {
    let (mut vault, other) = (stopped(Database::Sqlite), stopped(Database::Sqlite));
    let (own, foreign) = (vault.data_dir().join("orgvault.anchor"), other.data_dir().join("orgvault.anchor"));
    fs::copy(&foreign, &own).unwrap();
    let said = Server::fail(vault.serve_command()).refused().stderr;
    assert!(said.contains("belongs to another vault") && said.contains("--adopt-anchor"), "{said}");
    assert_eq!(vault.run(&["audit", "verify"]).status, Some(1));
    fs::write(&own, b"OVAN").unwrap();
    let said = Server::fail(vault.serve_command()).refused().stderr;
    assert!(said.contains("is damaged"), "{said}");
    vault.serve_with(&["--adopt-anchor"]);
    vault.stop();
    assert_eq!(findings(&vault), []);
}

/// A server on another machine: a data directory of its own, without an anchor.
#[test]
fn a_new_replica_adopts_the_database() {
    let mut vault = Vault::start(Database::Postgres);
    vault.admin_session();
    vault.restart();
    let elsewhere = vault.scratch("elsewhere");
    let key = vault.data_dir().join("root.key");
    let replica = |flags: &[&str]| {
        let mut command = vault.serve_command();
        command.arg("--data-dir").arg(&elsewhere).arg("--root-key-file").arg(&key).args(flags);
        command
    };
    let said = Server::fail(replica(&[])).refused().stderr;
    assert!(said.contains("For a new replica, run `orgvault serve --adopt-anchor`"), "{said}");
    let server = Server::start(replica(&["--adopt-anchor"]), &vault.scratch("second"), &vault.scratch("second-log"));
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(replica(&[]), &vault.scratch("second"), &vault.scratch("second-log"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_server_whose_database_is_set_back_ends() {
    let mut vault = stopped(Database::Postgres);
    vault.serve();
    let mut server = vault.take_server();
    Sql::of(&vault).run("DELETE FROM audit_checkpoints WHERE number = (SELECT max(number) FROM audit_checkpoints)");
    assert_eq!(server.wait(), Some(1));
    assert!(vault.log().contains("was set back to an earlier state"), "{}", vault.log());
}

/// Five ways to bend the audit with SQL, each found with its name.
#[test]
fn what_sql_did_to_the_audit_is_found() {
    let vault = stopped(Database::Postgres);
    let sql = Sql::of(&vault);
    assert_eq!(findings(&vault), []);
    let ids: Vec<String> = sql.run("SELECT id FROM audit ORDER BY id").into_iter().map(|row| row[0].clone()).collect();
    let (removed, changed, one, other) = (&ids[1], &ids[2], &ids[3], &ids[4]);
    sql.run(&format!("DELETE FROM audit WHERE id = '{removed}'"));
    sql.run(&format!("UPDATE audit SET at = at - 3600000 WHERE id = '{changed}'"));
    sql.run(&format!("UPDATE audit SET id = 'spare' WHERE id = '{one}'"));
    sql.run(&format!("UPDATE audit SET id = '{one}' WHERE id = '{other}'"));
    sql.run(&format!("UPDATE audit SET id = '{other}' WHERE id = 'spare'"));
    let added = "0190a000-0000-7000-8000-000000000000";
    let columns =
        "at, organization_id, actor, account_id, session_id, action, subject, count, key_id, code, checkpoint";
    sql.run(&format!(
        "INSERT INTO audit (id, {columns}) SELECT '{added}', {columns} FROM audit WHERE id = '{}'",
        ids[5]
    ));
    let expected = [("missing", removed), ("changed", changed), ("reordered", one), ("reordered", other)];
    let mut expected: Vec<_> = expected.map(|(kind, entry)| (kind.to_owned(), Some(entry.clone()))).to_vec();
    expected.push(("added".to_owned(), Some(added.to_owned())));
    let found = findings(&vault);
    assert_eq!(found, expected);
    let said = vault.run(&["audit", "verify"]).stdout;
    for line in [
        format!("entry {removed} is missing: checkpoint "),
        format!("entry {changed} was changed: it does not fit its code"),
        format!("entry {one} was reordered: it belongs to entry {other}"),
        format!("entry {added} was added after sealing: checkpoint "),
    ] {
        assert!(said.contains(&line), "{line}: {said}");
    }
}
