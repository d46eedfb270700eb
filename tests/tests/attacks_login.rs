//! Attacks on the login of the program: lockout, passwords, default accounts.

use serde_json::json;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    a08_lock_survives_a_killed_server,
}

fn a08_lock_survives_a_killed_server(database: Database) {
    let mut vault = Vault::start(database);
    let account = vault.admin();
    for _ in 0..5 {
        // A correct password with a wrong code counts as a failure.
        vault.client().log_in(&account.login("99999-99999-99999-99999")).problem("invalid-login");
    }
    vault.client().log_in(&account.sound_login()).problem("invalid-login");
    vault.kill_and_restart();
    let before = vault.password_evaluations();
    vault.client().log_in(&account.sound_login()).problem("invalid-login");
    assert_eq!(vault.password_evaluations(), before, "still locked: nothing was compared");
    vault.run(&["account", "unlock", "--email", &account.email]).done();
    account.log_in(&vault.client());
}

#[test]
fn a13_passwords_are_compared_exactly() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let long = "0123456789abcdef".repeat(64);
    // A password, and others that must not match it.
    let cases: [(&str, &[&str]); 6] = [
        (" spaces around ", &["spaces around ", " spaces around"]),
        ("Case Matters", &["case matters"]),
        (&long, &[&long[..1023], &long[1..], &long[..72]]),
        ("pa\u{df}w\u{f6}rt \u{1f511}", &["passw\u{f6}rt \u{1f511}", "pa\u{df}wo\u{308}rt \u{1f511}"]),
        ("before\u{0}after", &["before", "before\u{0}other"]),
        ("two\nlines\r\nof it", &["two\nlines\nof it"]),
    ];
    for (number, (password, others)) in cases.iter().enumerate() {
        let account = vault.account_of(&format!("case{number}@example.com"), password);
        for other in *others {
            let mut body = account.sound_login();
            body["password"] = json!(other);
            client.log_in(&body).problem("invalid-login");
        }
        client.log_in(&account.sound_login()).expect(200);
    }
}

#[test]
fn a15_weak_passwords_are_refused() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme Imports Inc");
    let email = "someone@acme-imports.example";
    let create = ["account", "create", "--org", "Acme Imports Inc", "--email", email, "--role", "viewer"];
    let with = |arguments: &[&str], password: &str| {
        let file = vault.password_file(password);
        vault.run(&[arguments, &["--json", "--password-file", file.to_str().unwrap()]].concat())
    };
    let long = "p".repeat(1025);
    let weak = ["", "seven77", "Password1", "12345678", email, "Acme Imports Inc1", "OrgVault2026!", &long];
    for password in weak {
        let output = with(&create, password).refused().stderr;
        // Short texts, and the address of the account, occur in any message about it.
        let word = password.len() < 8 || password == email;
        assert!(word || !output.contains(password), "repeated: {output}");
    }
    with(&create, "a longer sentence").done();
}

#[test]
fn a16_server_without_setup_serves_nothing() {
    let mut vault = Vault::absent(Database::Sqlite);
    vault_tests::process::Server::fail(vault.serve_command()).refused();
    assert!(!vault.data_dir().exists(), "a refused start makes nothing");
    vault.run(&["init"]).done();
    vault.serve();
    let client = vault.client();
    for (email, password) in [("admin", "admin"), ("admin@example.com", ""), ("admin@orgvault.local", "orgvault")] {
        let login = json!({"email": email, "password": password, "passcode": "000000"});
        client.log_in(&login).problem("invalid-login");
    }
    assert_eq!(vault.json(&["account", "list"]), json!([]));
    assert_eq!(vault.json(&["org", "list"]), json!([]));
}
