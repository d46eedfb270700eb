//! The audit log: unauthorized changes in the database are detected.

use serde_json::{Value, json};
use std::fs;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault, on_both_databases};

/// Creates a vault without a running server, whose audit log has several checkpoints and no unsealed entries.
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

/// Returns the findings of `audit verify` as kind and entry.
fn findings(vault: &Vault) -> Vec<(String, Option<String>)> {
    let run = vault.run(&["audit", "verify", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(document["found"], json!(findings.len()));
    assert_eq!(run.status, Some(i32::from(!findings.is_empty())), "{}", run.stderr);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    findings.iter().map(|finding| (text(&finding["kind"]).unwrap(), text(&finding["entry"]))).collect()
}

fn stored_audit_log_is_verified(database: Database) {
    let vault = stopped(database);
    let document = vault.json(&["audit", "verify"]);
    let entries = document["verified"].as_u64().unwrap();
    assert!(entries >= 8, "{document}");
    assert_eq!((&document["found"], &document["unsealed"]), (&json!(0), &json!(0)), "{document}");
    assert_eq!(document["anchor"], document["newest_checkpoint"]);
    let output = vault.run(&["audit", "verify"]).done().stdout;
    let newest = &document["newest_checkpoint"];
    assert_eq!(
        output,
        format!("Verified {entries} entries in {newest} checkpoints. The anchor contains checkpoint {newest}.\n")
    );
    // A server must seal the entries of commands.
    vault.organization("Globex");
    assert_eq!(vault.json(&["audit", "verify"])["unsealed"], json!(1));
}

fn next_server_continues_audit_chain_after_kill(database: Database) {
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

/// Restores a copy of the data directory. The anchor is in it too, so it is kept separately.
fn older_database_is_refused(database: Database) {
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
    assert_eq!(findings(&vault), [("truncated".to_owned(), None)]);
    let refused = Server::fail(vault.serve_command());
    refused.refused().says("was rolled back to an earlier state").says("orgvault.anchor");
    // The flag for new replicas does not help. It does without the anchor.
    let mut adopting = vault.serve_command();
    adopting.arg("--adopt-anchor");
    Server::fail(adopting).refused();
    fs::remove_file(directory.join("orgvault.anchor")).unwrap();
    Server::fail(vault.serve_command()).refused().says("--adopt-anchor");
    vault.serve_with(&["--adopt-anchor"]);
    vault.stop();
    assert_eq!(findings(&vault), []);
    assert!(directory.join("orgvault.anchor").exists());
}

/// Reading the audit log seals it, also before the first start of a server.
fn vault_is_served_after_audit_reads(database: Database) {
    let mut vault = Vault::init(database);
    vault.organization("Acme");
    assert_ne!(vault.json(&["audit", "list"]), json!([]));
    assert_ne!(vault.json(&["audit", "verify"])["newest_checkpoint"], 0);
    vault.serve();
}

/// Lists on the command line include all organizations by default.
fn actions_are_listed_in_audit_log(database: Database) {
    let mut vault = Vault::start(database);
    let (acme, globex) = (vault.account("Acme", "admin"), vault.account("Globex", "admin"));
    let session = acme.log_in(&vault.client());
    globex.log_in(&vault.client()).save(&small("theirs", 1));
    let mut saved: Vec<String> = (0..3).map(|number| session.save(&small("imports", number))).collect();
    // Each entry contains its request and network. Admins read those of their own organization.
    let save = session.try_save(&small("imports", 9)).expect(201);
    saved.push(save.json()["id"].as_str().unwrap().to_owned());
    vault.restart(); // seals all entries
    let texts = |entries: &[Value], member: &str| -> Vec<String> {
        entries.iter().map(|entry| entry[member].as_str().unwrap_or_default().to_owned()).collect()
    };
    let newest_first: Vec<String> = saved.iter().rev().map(|id| format!("credential:{id}")).collect();
    let listed = session.on(&vault.client()).get("/audit?action=credential.saved").expect(200).json();
    assert_eq!(texts(listed.as_array().unwrap(), "subject"), newest_first);
    let expected = (&json!(save.header("x-request-id").unwrap()), &json!("127.0.0.0/24"), &json!(acme.id));
    assert_eq!((&listed[0]["request_id"], &listed[0]["network"], &listed[0]["account"]), expected);
    // The next page has the filters of the first one.
    let session = session.on(&vault.client());
    let page = session.get("/audit?action=credential.saved&limit=3").expect(200);
    let next = page.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    let left = session.call("GET", &next).send().expect(200).json();
    assert_eq!(texts(left.as_array().unwrap(), "subject"), newest_first[3..]);
    for (query, value) in [("subject", &*saved[1]), ("actor", "integration"), ("until", "2020-01-01T00:00:00Z")] {
        let found = session.get(&format!("/audit?{query}={value}")).expect(200).json();
        assert_eq!(found.as_array().unwrap().len(), usize::from(query == "subject"), "{query}");
    }
    for query in ["?action=", "?actor=a%20b", "?since=yesterday", "?limit=0", "?cursor=AAAA", "?organization=x"] {
        assert!(matches!(session.get(&format!("/audit{query}")).status, 400 | 422), "{query}");
    }

    let listed = vault.json(&["audit", "list", "--org", "Acme", "--action", "credential.saved"]);
    assert_eq!(texts(listed.as_array().unwrap(), "subject"), newest_first);
    let listed = vault.json(&["audit", "list", "--action", "credential.saved", "--limit", "2"]);
    assert_eq!(texts(listed.as_array().unwrap(), "subject"), newest_first[..2]);
    let output = vault.run(&["audit", "list", "--actor", &acme.email]).done().stdout;
    let heading = output.lines().next().unwrap();
    assert!(heading.starts_with("TIME") && heading.ends_with("DETAILS") && output.contains(&acme.email), "{output}");
    assert!(!output.contains(&globex.email), "{output}");
    let create = ["integration", "create", "--org", "Acme", "--name", "Etl Jobs", "--namespace", "a"];
    let id = vault.json(&create)["id"].as_str().unwrap().to_owned();
    let (short, subject) = (&id[id.len() - 8..], format!("integration:{id}"));
    assert!(vault.run(&["integration", "list"]).done().stdout.contains(short));
    for text in ["etl jobs", short, &id, &subject] {
        let output = vault.run(&["audit", "list", "--subject", text]).done().stdout;
        assert!(output.contains(&format!("Etl Jobs ({short})")) && output.lines().count() == 2, "{text}: {output}");
    }
    let file = vault.scratch("export.jsonl");
    let export = ["audit", "list", "--json-lines", "--action", "credential.saved", "--output", file.to_str().unwrap()];
    let output = vault.run(&export).done();
    assert_eq!((output.stdout.as_str(), vault_tests::snapshot::mode(&file)), ("", 0o600));
    let lines = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(texts(&lines[1..], "subject"), saved.iter().map(|id| format!("credential:{id}")).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line["checkpoint"].is_i64()), "{lines:?}");
    vault.run(&export).refused();
    let to_pipe = vault.run(&["audit", "list", "--json-lines", "--org", "Globex"]).done().stdout;
    assert!(to_pipe.lines().count() >= 4 && !to_pipe.contains(&saved[0]), "{to_pipe}");
    vault.run(&["audit", "list", "--org", "Nowhere"]).refused();
    vault.run(&["audit", "list", "--since", "yesterday"]).misused();
}

on_both_databases!(
    vault_is_served_after_audit_reads,
    actions_are_listed_in_audit_log,
    stored_audit_log_is_verified,
    next_server_continues_audit_chain_after_kill,
    older_database_is_refused,
);

#[test]
fn foreign_or_damaged_anchor_is_refused() {
    let (mut vault, other) = (stopped(Database::Sqlite), stopped(Database::Sqlite));
    let (own, foreign) = (vault.data_dir().join("orgvault.anchor"), other.data_dir().join("orgvault.anchor"));
    fs::copy(&foreign, &own).unwrap();
    Server::fail(vault.serve_command()).refused().says("belongs to another vault").says("--adopt-anchor");
    assert_eq!(vault.run(&["audit", "verify"]).status, Some(1));
    fs::write(&own, b"OVAN").unwrap();
    Server::fail(vault.serve_command()).refused().says("is damaged");
    vault.serve_with(&["--adopt-anchor"]);
    vault.stop();
    assert_eq!(findings(&vault), []);
}

/// Database and anchor differ by a rotation of the keys, so the anchor does not verify under any key of the older database.
#[test]
fn database_from_before_a_key_rotation_is_not_adopted() {
    let mut vault = stopped(Database::Sqlite);
    let database = vault.data_dir().join("orgvault.db");
    let backup = vault.scratch("before.backup");
    vault.run(&["backup", backup.to_str().unwrap()]).done();
    let older = fs::read(&database).unwrap();
    vault.run(&["key", "rotate", "--instance"]).done();
    vault.serve();
    vault.organization("Globex");
    vault.stop();
    let newer = fs::read(&database).unwrap();

    fs::write(&database, older).unwrap();
    for flags in [&[][..], &["--adopt-anchor"]] {
        let mut serve = vault.serve_command();
        serve.args(flags);
        let output = Server::fail(serve).refused().stderr;
        assert!(output.contains("is older than the anchor") && output.contains("restore --after-external"), "{output}");
        assert!(!output.contains("--adopt-anchor"), "{output}");
    }
    fs::write(&database, newer).unwrap();
    vault.run(&["restore", backup.to_str().unwrap(), "--replace"]).done();
    vault.serve();
    vault.stop();
    assert_eq!(findings(&vault), []);
}

/// A server on another host: a separate data directory without an anchor.
#[test]
fn new_replica_adopts_the_database() {
    let mut vault = Vault::start(Database::Postgres);
    vault.admin_session();
    vault.restart();
    let elsewhere = vault.scratch("elsewhere");
    let key = vault.data_dir().join("root.key");
    let replica = |flags: &[&str]| {
        let mut command = vault.serve_command();
        command.arg("--data-dir").arg(&elsewhere).arg("--root-key").arg(&key).args(flags);
        command
    };
    Server::fail(replica(&[])).refused().says("For a new replica, run `orgvault serve --adopt-anchor`");
    let server = Server::start(replica(&["--adopt-anchor"]), &vault.scratch("second"), &vault.scratch("second-log"));
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(replica(&[]), &vault.scratch("second"), &vault.scratch("second-log"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn server_exits_when_database_is_rolled_back() {
    let mut vault = stopped(Database::Postgres);
    vault.serve();
    let mut server = vault.take_server();
    Sql::of(&vault).run("DELETE FROM audit_checkpoints WHERE number = (SELECT max(number) FROM audit_checkpoints)");
    assert_eq!(server.wait(), Some(1));
    assert!(vault.log().contains("was rolled back to an earlier state"), "{}", vault.log());
}

/// Five manipulations of the audit log with SQL, each detected and named.
#[test]
fn sql_changes_of_audit_log_are_found() {
    let vault = stopped(Database::Postgres);
    let sql = Sql::of(&vault);
    assert_eq!(findings(&vault), []);
    let ids: Vec<String> = sql.run("SELECT id FROM audit ORDER BY id").into_iter().map(|row| row[0].clone()).collect();
    let (removed, changed, one, other) = (&ids[1], &ids[2], &ids[3], &ids[4]);
    sql.run(&format!("DELETE FROM audit WHERE id = '{removed}'"));
    sql.run(&format!("UPDATE audit SET at = at - 3600000 WHERE id = '{changed}'"));
    let spare = "00000000-0000-4000-8000-000000000000";
    sql.run(&format!("UPDATE audit SET id = '{spare}' WHERE id = '{one}'"));
    sql.run(&format!("UPDATE audit SET id = '{one}' WHERE id = '{other}'"));
    sql.run(&format!("UPDATE audit SET id = '{other}' WHERE id = '{spare}'"));
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
    let output = vault.run(&["audit", "verify"]).stdout;
    for line in [
        format!("entry {removed} is missing: checkpoint "),
        format!("entry {changed} was modified: its MAC does not verify"),
        format!("entry {one} was reordered: it belongs to entry {other}"),
        format!("entry {added} was added after sealing: checkpoint "),
    ] {
        assert!(output.contains(&line), "{line}: {output}");
    }
}
