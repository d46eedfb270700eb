//! `orgvault doctor`: checks of the environment and of the stored data.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use vault_tests::samples::small;
use vault_tests::{Database, Vault};

vault_tests::on_both_databases!(intact_vault_passes_doctor, damaged_vault_is_reported_with_remedy);

/// Returns the result of each check, and the whole report.
fn report(stdout: &str) -> (BTreeMap<String, String>, Value) {
    let report: Value = serde_json::from_str(stdout).unwrap();
    let text = |check: &Value, member: &str| check[member].as_str().unwrap().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    (checks.map(|check| (text(check, "check"), text(check, "result"))).collect(), report)
}

fn intact_vault_passes_doctor(database: Database) {
    let vault = Vault::start(database);
    vault.organization("Acme");
    let output = vault.run(&["doctor", "--json"]).done().stdout;
    let (results, report) = report(&output);
    for check in ["vault", "directory", "keys"] {
        assert_eq!(results[check], "passed", "{report}");
    }
    match database {
        Database::Sqlite => assert_eq!(results["root-key"], "warning", "it is next to the database: {report}"),
        Database::Postgres => assert_eq!(results["clock"], "passed", "{report}"),
    }
    let text = vault.run(&["doctor"]).done().stdout;
    assert!(text.starts_with("CHECK") && text.contains("What to do:"), "{text}");
}

fn damaged_vault_is_reported_with_remedy(database: Database) {
    let vault = Vault::init(database);
    set_permissions(vault.data_dir(), Permissions::from_mode(0o755)).unwrap();
    let run = vault.run(&["doctor", "--json"]);
    assert_eq!(run.status, Some(1));
    let (results, report) = report(&run.stdout);
    assert_eq!(results["directory"], "failed", "{report}");
    assert!(run.stdout.contains("chmod 700"), "{report}");
    set_permissions(vault.data_dir(), Permissions::from_mode(0o700)).unwrap();

    // A key of another vault.
    let other = Vault::init(Database::Sqlite);
    let key = other.data_dir().join("root.key");
    let run = vault.run(&["doctor", "--json", "--root-key", key.to_str().unwrap()]);
    assert_eq!(run.status, Some(1));
    assert!(run.stdout.contains(r#""check":"vault","result":"failed""#), "{}", run.stdout);
}

/// Flipped bits anywhere in the database file.
#[test]
fn flipped_bits_of_the_database_file_are_found() {
    let mut vault = Vault::start(Database::Sqlite);
    let admin = vault.admin_session();
    (0..40).for_each(|number| drop(admin.save(&small("imports", number))));
    vault.stop();
    let file = vault.data_dir().join("orgvault.db");
    let sound = std::fs::read(&file).unwrap();
    assert_eq!(vault.run(&["doctor", "--deep", "--json"]).status, Some(0));
    for place in (1..=12).map(|part| sound.len() * part / 13) {
        let mut flipped = sound.clone();
        flipped[place] ^= 1;
        std::fs::write(&file, flipped).unwrap();
        let run = vault.run(&["doctor", "--deep", "--json"]);
        assert_eq!(run.status, Some(1), "byte {place}: {}", run.stdout);
        let (checks, _) = report(&run.stdout);
        let is_reported = checks.get("pages").is_some_and(|result| result == "failed") || checks["vault"] == "failed";
        assert!(is_reported, "byte {place}: {}", run.stdout);
    }
}
