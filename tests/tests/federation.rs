//! Signing keys of keyless storage access: commands of the operator, and the documents that a server publishes.

use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use vault_tests::binary::Run;
use vault_tests::providers::{ISSUER, KEY_SET, published, signing_key_file};
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    signing_keys_are_added_published_and_rotated,
    invalid_signing_key_files_are_refused,
}

const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Runs a command with the rights of the tables' owner, which changes of keys require on PostgreSQL.
fn federation(vault: &Vault, arguments: &[&str]) -> Run {
    let mut command: Command = vault.owner_command(&[&["federation"], arguments].concat());
    Run::of(command.env("ORGVAULT_FEDERATION_ISSUER", ISSUER))
}

/// The issuer of the tests cannot be reached, so the status of a vault with keys has a finding.
fn status(vault: &Vault) -> Value {
    serde_json::from_str(&federation(vault, &["status", "--json"]).stdout).unwrap()
}

fn states(vault: &Vault) -> Vec<(String, String)> {
    let text = |key: &Value, name: &str| key[name].as_str().unwrap().to_owned();
    status(vault)["keys"].as_array().unwrap().iter().map(|key| (text(key, "key"), text(key, "state"))).collect()
}

fn add(vault: &Vault, name: &str) -> String {
    let file = signing_key_file(vault, name);
    let added = federation(vault, &["key", "add", "--json", "--file", file.to_str().unwrap()]).done().json();
    added["key"].as_str().unwrap().to_owned()
}

fn signing_keys_are_added_published_and_rotated(database: Database) {
    let mut vault = Vault::init(database);
    Run::of(&mut vault.owner_command(&["federation", "status"])).misused().says("Set --federation-issuer");
    assert_eq!(status(&vault)["keys"], json!([]));

    let first = add(&vault, "accepted/2048");
    let refused = signing_key_file(&vault, "accepted/3072");
    let refused = federation(&vault, &["key", "add", "--file", refused.to_str().unwrap()]).refused().stderr;
    assert!(refused.contains(&format!("signing key {first} is not current yet")), "{refused}");
    federation(&vault, &["key", "promote"]).refused().says("providers may not have read").says("--now");
    federation(&vault, &["key", "promote", "--now"]).done();
    let unpublished = federation(&vault, &["status"]);
    assert_eq!(unpublished.status, Some(1));
    assert!(unpublished.stdout.contains("Next: ") && !unpublished.stdout.contains("No action"), "{unpublished:?}");
    assert!(unpublished.stderr.contains("the publication check failed: unreachable"), "{unpublished:?}");
    let current = federation(&vault, &["key", "remove", &first]).refused().stderr;
    assert!(current.contains(&format!("signing key {first} is current")), "{current}");
    federation(&vault, &["key", "promote", "--now"]).refused().says("there is no next signing key");

    vault.serve_with(&["--federation-issuer", ISSUER]);
    let client = vault.client();
    assert_eq!(published(&client, 1), std::slice::from_ref(&first));
    let second = add(&vault, "accepted/3072");
    let mut both = published(&client, 2);
    both.sort();
    let mut expected = [first.clone(), second.clone()];
    expected.sort();
    assert_eq!(both, expected);

    // The files are those that the server publishes.
    let directory = vault.scratch("documents");
    federation(&vault, &["documents", directory.to_str().unwrap()]).done();
    for path in [DISCOVERY, KEY_SET] {
        let response = client.get(path).try_send().unwrap().expect(200);
        let file = fs::read_to_string(directory.join(path.trim_start_matches('/'))).unwrap();
        assert_eq!(response.json(), serde_json::from_str::<Value>(&file).unwrap());
    }
    let discovery = client.get(DISCOVERY).try_send().unwrap().expect(200).json();
    assert_eq!((&discovery["issuer"], &discovery["jwks_uri"]), (&json!(ISSUER), &json!(format!("{ISSUER}{KEY_SET}"))));

    let promoted = federation(&vault, &["key", "promote", "--now"]).done().stdout;
    assert!(promoted.contains(&format!("orgvault federation key remove {first}")), "{promoted}");
    let listed = |key: &str, state: &str| (key.to_owned(), state.to_owned());
    assert_eq!(states(&vault), [listed(&second, "current"), listed(&first, "retired")]);
    assert_eq!(published(&client, 2), [second.clone(), first.clone()], "until it is removed");
    federation(&vault, &["key", "remove", &first]).done();
    assert_eq!(published(&client, 1), std::slice::from_ref(&second));
    assert_eq!(states(&vault), [listed(&second, "current")]);
    for action in ["key-added", "key-promoted", "key-retired", "key-removed"] {
        let audit = vault.json(&["audit", "list", "--action", &format!("federation.{action}")]);
        assert!(!audit.as_array().unwrap().is_empty(), "{action}");
    }
    vault.stop();
}

fn invalid_signing_key_files_are_refused(database: Database) {
    let vault = Vault::init(database);
    let refused = |file: &Path| {
        let refused = federation(&vault, &["key", "add", "--file", file.to_str().unwrap()]).refused();
        assert!(!refused.stderr.contains("MII"), "{}", refused.stderr);
        refused.stderr
    };
    for name in ["refused/1024", "refused/encrypted", "refused/ec", "refused/public"] {
        let output = refused(&signing_key_file(&vault, name));
        assert!(output.contains("is not an unencrypted RSA private key of 2,048 to 4,096 bits"), "{output}");
        assert!(output.contains("openssl genpkey"), "{output}");
    }
    let open = signing_key_file(&vault, "accepted/2048");
    fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&open).contains("--file"), "other users can read it");
    assert_eq!(status(&vault)["keys"], json!([]));
    for issuer in ["http://vault.example.com", "https://vault.example.com/", "https://vault.example.com:8443"] {
        let mut command = vault.owner_command(&["federation", "status"]);
        let output = Run::of(command.env("ORGVAULT_FEDERATION_ISSUER", issuer)).misused().stderr;
        assert!(output.contains("must be an https URL without port, query and trailing slash"), "{output}");
    }
}
