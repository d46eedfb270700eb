//! Replacement of the root key while a server runs. Nothing stops, the new root key then decrypts everything, and the
//! old one decrypts the backups made before.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use vault_tests::binary::Run;
use vault_tests::database::new_postgres;
use vault_tests::samples::small;
use vault_tests::{Account, ActivationListener, Client, Database, Integration, Vault, on_both_databases};

on_both_databases! {
    root_key_is_replaced_while_server_runs,
    instance_key_and_root_key_are_replaced_concurrently,
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs `orgvault key rotate --root` with the rights of the tables' owner, as it requires on PostgreSQL.
fn rotate(vault: &Vault, arguments: &[&str]) -> Run {
    Run::of(vault.owner_command(&["key", "rotate", "--root"]).args(arguments))
}

/// Returns the part of an activation that does not change between activations.
fn activated(integration: &Integration, client: &Client) -> Value {
    integration.activate(client, "imports/nightly").expect(201).json()["credentials"].clone()
}

/// Moves the new key to the path of the old one, with the printed command.
fn put_in_place(printed: &str) {
    let line = printed.lines().find(|line| line.trim_start().starts_with("ln ")).unwrap();
    assert!(std::process::Command::new("sh").args(["-c", line]).status().unwrap().success(), "{line}");
}

fn root_key_is_replaced_while_server_runs(database: Database) {
    let (mut vault, listener) = ActivationListener::open(database);
    let session = vault.admin_session();
    session.save(&small("imports/nightly", 1));
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    let before = activated(&integration, &listener.client());
    let old = vault.json(&["key", "status"])["root_key"].clone();
    let new_file = vault.scratch("new.key");

    let printed = rotate(&vault, &["--new-root-key", text(&new_file)]).done().stdout;
    assert_eq!(fs::metadata(&new_file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(printed.contains(&format!("Replaced root key {}", old.as_str().unwrap())), "{printed}");
    for expected in [text(&new_file), "Earlier backups need the old root key", "Running servers continue"] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }

    // The server continues, and another one starts with only the new root key.
    session.save(&small("imports/other", 2));
    assert_eq!(activated(&integration, &listener.client()), before);
    vault.run(&["key", "status"]).refused().says(&format!("but got root key {}", old.as_str().unwrap()));
    let new_flag = format!("--root-key=file:{}", text(&new_file));
    let status = vault.json(&["key", "status", &new_flag]);
    assert_ne!(status["root_key"], old);
    assert_eq!(status["other_root_keys"], json!([]));
    let entries = vault.json(&["audit", "list", &new_flag, "--action", "instance.root-key-replaced"]);
    assert_eq!(entries.to_string().matches("instance.root-key-replaced").count(), 1, "{entries}");
    vault.stop();
    let mut failed = vault.serve_command();
    Run::of(&mut failed).refused().says("needs root key").says(status["root_key"].as_str().unwrap());

    // At the old path, with the printed command.
    put_in_place(&printed);
    vault.serve();
    let session = session.on(&vault.client());
    assert!(session.is_live());
    assert_eq!(activated(&integration, &listener.client()), before);
    session.save(&small("imports/third", 3));
    let again = rotate(&vault, &["--new-root-key", text(&vault.data_dir().join("root.key")), "--json"]).done().json();
    assert_eq!((&again["result"], &again["root_key"]), (&json!("unchanged"), &status["root_key"]));
    vault.run(&["audit", "verify"]).done();
    assert_eq!(vault.metric("orgvault_integrity_failures_total"), 0);
}

/// Replaces both keys in immediate succession. Servers that have noticed neither continue and can be restarted.
fn instance_key_and_root_key_are_replaced_concurrently(database: Database) {
    let (mut vault, listener) = ActivationListener::open(database);
    let session = vault.admin_session();
    session.save(&small("imports/nightly", 1));
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    let before = activated(&integration, &listener.client());
    Run::of(&mut vault.owner_command(&["key", "rotate", "--instance"])).done();
    let new_file = vault.scratch("new.key");
    let printed = rotate(&vault, &["--new-root-key", text(&new_file)]).done().stdout;
    session.on(&vault.client()).save(&small("imports/other", 2));
    assert!(colleague(&vault, &new_file).log_in(&vault.client()).is_live());
    assert_eq!(activated(&integration, &listener.client()), before);
    put_in_place(&printed);
    vault.kill_and_restart();
    assert!(session.on(&vault.client()).is_live());
    assert_eq!(activated(&integration, &listener.client()), before);
    vault.stop();
    let output = vault.run(&["doctor", "--deep"]);
    assert!(output.stdout.contains("rows can be decrypted and match the audit log"), "{output:?}");
}

/// Creates an account with a command that uses the root key in `file`.
fn colleague(vault: &Vault, file: &Path) -> Account {
    let create =
        ["account", "create", "--org", "Acme", "--email", "colleague@example.com", "--role", "viewer", "--json"];
    let created = vault.run(&[&create[..], &["--root-key", text(file)]].concat()).done().json();
    Account::new(&created, None)
}

#[test]
fn backups_require_root_key_in_use_at_backup_time() {
    let mut vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let id = session.save(&small("imports/nightly", 1));
    let (first, second) = (vault.scratch("first.backup"), vault.scratch("second.backup"));
    vault.run(&["backup", text(&first)]).done();
    let new_file = vault.scratch("new.key");
    let rotated = rotate(&vault, &["--new-root-key", text(&new_file), "--json"]).done().json();
    assert_eq!(rotated["result"], "replaced");
    let new_flag = format!("--root-key=file:{}", text(&new_file));
    // While the server with the old root key runs.
    vault.run(&["backup", text(&second)]).refused().says("needs root key");
    assert!(!second.exists());
    vault.run(&["backup", text(&second), &new_flag]).done();
    vault.stop();

    let old_flag = format!("--root-key={}", text(&vault.data_dir().join("root.key")));
    for (backup, right, wrong) in [(&first, &old_flag, &new_flag), (&second, &new_flag, &old_flag)] {
        let directory = vault.scratch(&format!("{}-restored", backup.file_stem().unwrap().to_str().unwrap()));
        fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let restore = |flag: &str| vault.run(&["restore", text(backup), "--data-dir", text(&directory), flag]);
        restore(wrong).refused().says("needs root key");
        restore(right).done();
        let listed = vault.json(&["org", "list", "--data-dir", text(&directory), right]);
        assert!(listed.to_string().contains("Acme"), "{listed}");
    }

    let url = new_postgres();
    vault.run(&["migrate-to", &url]).refused();
    vault.run(&["migrate-to", &url, &new_flag]).done();
    vault.use_postgres(url);
    vault.serve_with(&[&new_flag]);
    assert_eq!(session.on(&vault.client()).show(&id).expect(200).json()["id"], json!(id));
}
