//! Migration of a vault from the embedded database to PostgreSQL. It works as before, no acknowledged change is lost,
//! and an interrupted or rejected migration leaves the vault where it is.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use vault_tests::binary::Run;
use vault_tests::database::new_postgres;
use vault_tests::process::Server;
use vault_tests::samples::{every_type, small};
use vault_tests::sql::Sql;
use vault_tests::{ActivationListener, Client, Database, Integration, Vault};

const NO_ROWS: Vec<Vec<String>> = Vec::new();

fn is_moved(vault: &Vault) -> bool {
    vault.data_dir().join("orgvault.db.moved").exists()
}

/// Returns the part of an activation that does not change between activations.
fn activated(integration: &Integration, client: &Client, namespace: &str) -> Value {
    integration.activate(client, namespace).expect(201).json()["credentials"].clone()
}

#[test]
fn vault_works_on_postgres_after_migration() {
    let (mut vault, listener) = ActivationListener::open(Database::Sqlite);
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let viewer = vault.account("Other", "viewer");
    let mut saved = Vec::new();
    for (number, sample) in every_type().into_iter().enumerate() {
        let mut request = sample.request.clone();
        request["namespace"] = format!("imports/{number}").into();
        saved.push(session.save(&request));
    }
    session.save(&small("frozen", 1));
    let invited = session.invite("grace@example.com", "editor").expect(201).json();
    let colleague = vault.account("Acme", "viewer");
    let re_enrolled = session.re_enrol(&colleague.id).expect(201).json();
    let integration = Integration::make(&vault, "nightly", &["imports/*", "frozen"]);
    let before: Vec<Value> =
        (0..4).map(|n| activated(&integration, &listener.client(), &format!("imports/{n}"))).collect();
    let shown: Vec<Value> = saved.iter().map(|id| session.show(id).expect(200).json()).collect();
    vault.run(&["namespace", "freeze", "frozen", "--org", "Acme"]).done();
    assert!(vault.account("Acme", "editor").log_in(&vault.client()).log_out().status == 204);
    vault.stop();
    let listed: Vec<Value> =
        ["org", "account", "integration", "namespace"].map(|what| vault.json(&[what, "list"])).into();

    let url = new_postgres();
    let moved = vault.json(&["migrate-to", &url]);
    assert!(is_moved(&vault));
    assert_eq!(moved["dry_run"], false);
    assert!(moved["tables"].as_array().unwrap().len() > 25, "{moved}");
    assert_eq!(Sql::at(&url).value("SELECT count(*) FROM audit WHERE action = 'database.copied'"), "1");

    vault.use_postgres(url);
    let again: Vec<Value> =
        ["org", "account", "integration", "namespace"].map(|what| vault.json(&[what, "list"])).into();
    assert_eq!(again, listed);
    vault.serve();
    let session = session.on(&vault.client());
    assert!(session.is_live(), "a session continues");
    for (id, shown) in saved.iter().zip(&shown) {
        assert_eq!(session.show(id).expect(200).json(), *shown);
    }
    let after: Vec<Value> =
        (0..4).map(|n| activated(&integration, &listener.client(), &format!("imports/{n}"))).collect();
    assert_eq!(after, before);
    assert_eq!(integration.activate(&listener.client(), "frozen").status, 403);
    assert_eq!(integration.live(&listener.client()).len(), 8, "activations of before and after");
    admin.log_in(&vault.client()).save(&small("imports/new", 2));
    viewer.log_in(&vault.client());
    let draft =
        serde_json::json!({"enrolment_code": invited["enrolment_code"], "password": "a rather long passphrase"});
    vault.client().request("POST", "/v1/enrol").json(&draft).send().expect(200);
    let again = vault.client().enrol(re_enrolled["enrolment_code"].as_str().unwrap(), "a rather long passphrase");
    assert_eq!(again.expect(200).json()["email"], *colleague.email);
    vault.client().log_in(&colleague.sound_login()).problem("invalid-login");
    assert_eq!(vault.metric("orgvault_integrity_failures_total"), 0);
}

#[test]
fn running_server_keeps_its_vault() {
    let mut vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let saved = session.save(&small("imports", 1));
    let url = new_postgres();
    vault.run(&["migrate-to", &url]).refused().says(&format!("serve (process {})", vault.server().id()));
    assert!(!is_moved(&vault));

    vault.run(&["migrate-to", "--dry-run", &url]).done().prints("Dry run").prints("Nothing was moved");
    assert!(!is_moved(&vault));
    assert_eq!(Sql::at(&url).everything(), NO_ROWS, "the target is as it was");
    assert_eq!(session.ids(), [saved]);
    session.save(&small("imports", 2));
    vault.stop();
    vault.run(&["migrate-to", &url]).done();
    vault.use_postgres(url);
    vault.serve();
    assert_eq!(session.on(&vault.client()).ids().len(), 2);
}

/// Kills the migration after each of its progress lines, until one run completes.
#[test]
fn killed_migration_completes_when_run_again() {
    let vault = Vault::init(Database::Sqlite);
    vault.account("Acme", "admin");
    let url = new_postgres();
    for lines in 0.. {
        let mut command = vault.command(&["migrate-to", &url, "--log-format", "json"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let seen = log.by_ref().take(lines).count();
        if seen < lines {
            assert!(child.wait().unwrap().success());
            assert!(lines > 5, "progress is printed");
            break;
        }
        let _ = child.kill();
        child.wait().unwrap();
        if is_moved(&vault) {
            break; // it completed before the kill
        }
        vault.run(&["account", "list"]).done();
    }
    assert!(is_moved(&vault));
    let there = ["account", "list", "--database-url", &url];
    assert_eq!(vault.json(&there).as_array().unwrap().len(), 1);

    // Killed after the commit, before the embedded database was marked as moved.
    std::fs::remove_file(vault.data_dir().join("orgvault.db.moved")).unwrap();
    let rows = Sql::at(&url).everything();
    vault.run(&["migrate-to", &url]).done();
    assert!(is_moved(&vault));
    assert_eq!(Sql::at(&url).everything(), rows, "nothing is copied twice");

    // If the embedded database was changed since, the other one is not the newest state.
    std::fs::remove_file(vault.data_dir().join("orgvault.db.moved")).unwrap();
    vault.run(&["org", "create", "Later"]).done();
    vault.run(&["migrate-to", &url]).refused().says("already contains this vault").says("another empty database");
    assert!(!is_moved(&vault));
    assert_eq!(Sql::at(&url).everything(), rows);
    vault.run(&["migrate-to", &new_postgres()]).done();
}

#[test]
fn non_empty_target_is_refused_unchanged() {
    let vault = Vault::init(Database::Sqlite);
    let (other, foreign, older, newer) =
        (Vault::init(Database::Postgres), new_postgres(), new_postgres(), new_postgres());
    Sql::at(&foreign).run("CREATE TABLE invoices (id bigint); INSERT INTO invoices VALUES (1)");
    for (url, change) in
        [(&older, "DELETE FROM schema_versions"), (&newer, "INSERT INTO schema_versions VALUES ('9999_later', 0)")]
    {
        vault.run(&["init", "--data-dir", vault.scratch("throwaway").to_str().unwrap(), "--database-url", url]).done();
        Sql::at(url).run(&format!("DELETE FROM instance; {change}"));
        std::fs::remove_dir_all(vault.scratch("throwaway")).unwrap();
    }
    for (url, why) in
        [(other.url(), "another vault"), (&foreign, "table invoices"), (&older, "it has table"), (&newer, "9999_later")]
    {
        let before = Sql::at(url).everything();
        for flags in [&["--dry-run"][..], &[]] {
            let output = vault.run(&[&["migrate-to", url], flags].concat()).refused().stderr;
            assert!(output.contains(why) && output.contains("Nothing was moved"), "{output}");
            assert!(output.contains("Create an empty database"), "{output}");
        }
        assert_eq!(Sql::at(url).everything(), before, "{why}");
        assert!(!is_moved(&vault));
    }
    let output = other.run(&["migrate-to", &new_postgres()]).refused().stderr;
    assert!(output.contains("on PostgreSQL; only an embedded database can be moved"), "{output}");
    vault.run(&["migrate-to", "sqlite://elsewhere.db"]).misused().says("postgres://");
    let output = vault.run(&["migrate-to", "postgres://user:sesame@127.0.0.1:1/vault"]).refused().stderr;
    assert!(output.contains("postgres://127.0.0.1:1/vault") && !output.contains("sesame"), "{output}");
    vault.run(&["org", "create", "Acme"]).done();
}

#[test]
fn moved_file_is_refused_naming_new_database() {
    let vault = Vault::init(Database::Sqlite);
    let url = new_postgres().replace("postgres@", "postgres:sesame@");
    let moved = Run::of(vault.command(&["migrate-to"]).env("ORGVAULT_MIGRATE_TO", &url)).done();
    assert!(!moved.stdout.contains("sesame") && !moved.stderr.contains("sesame"), "{moved:?}");
    let place = url.rsplit('/').next().unwrap();
    assert!(moved.stdout.contains(place) && moved.stdout.contains("ORGVAULT_DATABASE_URL"), "{moved:?}");
    let refusals = [&["init"][..], &["org", "list"], &["migrate"], &["migrate-to", &url]].map(|words| vault.run(words));
    let servers = ["serve", "quickstart"].map(|server| Server::fail(vault.command(&[server])));
    for refused in refusals.into_iter().chain(servers) {
        refused.refused().says("was moved to postgres://").says(place).says("--database-url").omits("sesame");
    }
}
