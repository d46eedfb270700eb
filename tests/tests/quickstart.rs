//! The main job in one command, and the lines that it tells people to paste.

use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use vault_tests::binary::Run;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::snapshot::{files, mode};
use vault_tests::{Account, Database, Vault, on_both_databases};

on_both_databases! {
    the_printed_lines_do_the_main_job,
    run_again_it_changes_nothing,
}

/// Runs `quickstart` with these arguments until it is ready; what it printed, and its server.
fn quickstart(vault: &Vault, arguments: &[&str]) -> (Server, String) {
    let output = vault.scratch("output");
    let command = vault.command(&[&["quickstart"], arguments].concat());
    let server = Server::start(command, &output, &vault.scratch("log"));
    (server, fs::read_to_string(output).unwrap())
}

fn the_printed_lines_do_the_main_job(database: Database) {
    let vault = Vault::absent(database);
    let (server, printed) = quickstart(&vault, &[]);
    for part in [
        "admin@example.com",
        "password",
        "otpauth://totp/",
        "\u{2588}",
        "copy of the root key",
        &server.address.to_string(),
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    // To the letter, as somebody would paste them.
    let script = &printed[printed.find("umask 077").unwrap()..];
    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-u", "-c", script]).current_dir(&home);
    if database == Database::Postgres {
        // The lines name the data directory; where else the rows lie is the operator's setting.
        shell.env("ORGVAULT_DATABASE_URL", vault.url());
    }
    let said = Run::of(&mut shell).done().stdout;
    let (list, status) = said.rsplit_once(']').unwrap_or_else(|| panic!("{said}"));
    let list: Vec<Value> = serde_json::from_str(&format!("{list}]")).unwrap();
    assert_eq!(list.len(), 1, "{said}");
    assert_eq!((list[0]["type"].as_str(), status.trim()), (Some("s3"), "204"));
    for file in files(&home) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    // What is secret goes nowhere where other users look: not into the arguments of any program.
    for line in script.lines().filter(|line| line.contains("curl")) {
        assert!(!line.contains("password\"") && !line.contains("secret"), "{line}");
    }
    assert_eq!(server.stop(), Some(0), "{}", vault.log());
}

#[test]
fn a_refused_login_stops_the_printed_lines_and_keeps_the_token() {
    let vault = Vault::absent(Database::Sqlite);
    let (server, printed) = quickstart(&vault, &[]);
    let script = &printed[printed.find("umask 077").unwrap()..];
    let (start, rest) = script.split_once("\"password\": \"").unwrap();
    let (_, end) = rest.split_once('"').unwrap();
    let wrong = format!("{start}\"password\": \"a wrong password\"{end}");
    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("orgvault.token"), "the token of before").unwrap();
    let run = Run::of(Command::new("sh").args(["-c", &wrong]).current_dir(&home));
    assert_ne!(run.status, Some(0), "{run:?}");
    assert!(run.stdout.contains("\"code\":\"invalid-login\""), "the answer is shown: {run:?}");
    assert!(!run.stdout.contains("invalid-token"), "nothing follows: {run:?}");
    assert_eq!(fs::read_to_string(home.join("orgvault.token")).unwrap(), "the token of before");
    drop(server);
}

#[test]
fn what_is_mistyped_is_refused_before_anything_is_made() {
    let vault = Vault::absent(Database::Sqlite);
    for flags in [["--email", "admin"], ["--org", " Acme"], ["--max-ttl", "1s"]] {
        let said = vault.run(&[&["quickstart"][..], &flags].concat()).misused().stderr;
        assert!(said.starts_with(&format!("orgvault: {}: ", flags[0])), "{said}");
        assert!(!vault.data_dir().exists(), "something was made all the same");
    }
}

#[test]
fn a_first_run_that_was_interrupted_is_taken_up_under_another_name() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Example");
    let (server, printed) = quickstart(&vault, &["--json", "--org", "Acme", "--email", "admin@acme.example"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["account"]["organization"], "Acme");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_lines_name_the_public_address() {
    let vault = Vault::absent(Database::Sqlite);
    let (server, printed) = quickstart(&vault, &["--public-url", "https://vault.example.com", "--base-path", "/a/v1"]);
    for part in [
        "https://vault.example.com/a/v1/login",
        "--public-url=https://vault.example.com --base-path=/a/v1 --org Example",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    assert_eq!(server.stop(), Some(0));
}

fn run_again_it_changes_nothing(database: Database) {
    let vault = Vault::absent(database);
    let (server, printed) = quickstart(&vault, &["--json", "--org", "Acme", "--email", "first@example.com"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let account = Account::new(&printed["account"], None);
    assert_eq!((&*account.email, &*account.organization), ("first@example.com", "Acme"));
    let session = account.log_in(&server.client());
    session.save(&small("a", 1));
    let accounts = vault.json(&["account", "list"]);
    assert_eq!(server.stop(), Some(0));
    let key = fs::read(vault.data_dir().join("root.key")).unwrap();

    let (server, printed) = quickstart(&vault, &["--json", "--org", "Other", "--email", "second@example.com"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed.get("account"), None, "what was shown once is not shown again");
    assert_eq!(vault.json(&["account", "list"]), accounts);
    assert_eq!(vault.json(&["org", "list"]).as_array().unwrap().len(), 1);
    assert_eq!(fs::read(vault.data_dir().join("root.key")).unwrap(), key);
    let session = session.on(&server.client());
    assert_eq!(session.list().len(), 1, "it serves what was there");
    account.log_in(&server.client());
    assert_eq!(server.stop(), Some(0));
    assert!(vault.log().contains("ignored --org and --email"), "{}", vault.log());
    let (server, printed) = quickstart(&vault, &[]);
    assert!(printed.contains("account set-password"), "{printed}");
    for secret in [&account.password, &account.secret, &account.uri] {
        assert!(!printed.contains(secret.as_str()), "{printed}");
    }
    drop(server);
}

#[test]
fn it_serves_what_init_and_create_made() {
    let vault = Vault::init(Database::Sqlite);
    let account = vault.admin();
    let (server, _) = quickstart(&vault, &[]);
    account.log_in(&server.client());
    assert_eq!(vault.json(&["account", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn an_address_in_use_is_told_before_anything_is_made() {
    let vault = Vault::absent(Database::Sqlite);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let flags = ["--listen", "--admin-listen", "--activation-listen"];
    for refused in flags {
        let words = flags.map(|flag| format!("{flag}={}", if flag == refused { &taken } else { "127.0.0.1:0" }));
        let words: Vec<&str> = ["quickstart"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let said = vault.run(&words).refused().stderr;
        assert!(said.contains(&taken), "{said}");
        for flag in flags {
            assert_eq!(said.contains(flag), flag == refused, "{said}");
        }
        assert!(!vault.data_dir().exists(), "something was made all the same");
    }
}

#[test]
fn who_serves_the_vault_is_told_rather_than_whose_address_it_is() {
    let vault = Vault::start(Database::Sqlite);
    let address = vault.address().to_string();
    let said = vault.run(&["quickstart", "--listen", &address]).refused().stderr;
    assert!(said.contains(&vault.server().id().to_string()) && !said.contains(&address), "{said}");
}
