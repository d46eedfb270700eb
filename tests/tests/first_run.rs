//! Creation of a vault, in an empty or non-empty location. Nothing remains incomplete, nothing that may belong to
//! another vault is replaced, and no message suggests the creation of a second vault.

use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use vault_tests::binary::{self, Run};
use vault_tests::process::{Server, free_address};
use vault_tests::snapshot::Snapshot;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    arguments_are_validated_before_anything_is_created,
    leftover_root_key_is_not_used_for_another_vault,
    missing_root_key_is_never_replaced,
}

/// Words in messages that could lead to a second vault, or to the loss of one.
const DANGEROUS: [&str; 6] = ["/dev/urandom", "chmod", "chown", "overwrite it", "delete", "remove"];

/// Runs `quickstart`, which must fail to start a server.
fn quickstart_fails(vault: &Vault, arguments: &[&str]) -> Run {
    Server::fail(vault.command(&[&["quickstart"], arguments].concat()))
}

fn random_key(path: &Path) {
    let mut random = [0; 32];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut random).unwrap();
    fs::write(path, random).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn arguments_are_validated_before_anything_is_created(database: Database) {
    let vault = Vault::absent(database);
    for arguments in [
        ["--email", "admin"],
        ["--email", "admin@@example.com"],
        ["--org", ""],
        ["--org", " Acme"],
        ["--max-ttl", "1s"],
    ] {
        quickstart_fails(&vault, &arguments).misused().says(&format!("orgvault: {}: ", arguments[0]));
        assert!(!vault.data_dir().exists(), "{arguments:?}: something was made");
    }
    // The corrected command succeeds.
    let (server, _) = vault.quickstart(&["--email", "admin@example.org", "--org", "Acme"]);
    assert_eq!(vault.json(&["account", "list"])[0]["email"], "admin@example.org");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn closed_terminal_stops_the_server_in_order() {
    let vault = Vault::absent(Database::Sqlite);
    let (server, _) = vault.quickstart(&["--email", "admin@example.org", "--org", "Acme"]);
    assert_eq!(server.hang_up(), Some(0));
}

fn leftover_root_key_is_not_used_for_another_vault(database: Database) {
    let vault = Vault::absent(database);
    fs::create_dir(vault.data_dir()).unwrap();
    let key = vault.data_dir().join("root.key");
    random_key(&key);
    let before = Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"]);
    for expected in [vault.run(&["init"]).refused().stderr, quickstart_fails(&vault, &[]).refused().stderr] {
        assert!(expected.contains(key.to_str().unwrap()) && expected.contains("no vault was found"), "{expected}");
        assert!(!DANGEROUS.iter().any(|word| expected.contains(word)), "{expected}");
    }
    assert_eq!(Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"]), before);

    // A root key that the operator names may exist before the vault.
    let provisioned = vault.scratch("provisioned.key");
    random_key(&provisioned);
    let content = fs::read(&provisioned).unwrap();
    fs::remove_file(&key).unwrap();
    vault.run(&["init", "--root-key", provisioned.to_str().unwrap()]).done();
    assert_eq!(fs::read(&provisioned).unwrap(), content);
    assert!(!key.exists());
}

fn missing_root_key_is_never_replaced(database: Database) {
    let vault = Vault::init(database);
    let (key, kept) = (vault.data_dir().join("root.key"), vault.scratch("kept.key"));
    fs::rename(&key, &kept).unwrap();
    let before = Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"]);
    for command in [&["init"][..], &["migrate"], &["org", "list"]] {
        let output = vault.run(command).refused().stderr;
        if !(database == Database::Postgres && command == ["init"]) {
            assert!(output.contains(&format!("root key {} not found", key.display())), "{output}");
            assert!(output.contains("Restore the key") && output.contains("--root-key"), "{output}");
        }
        assert!(!DANGEROUS.iter().any(|word| output.contains(word)), "{output}");
    }
    quickstart_fails(&vault, &[]).refused();
    assert_eq!(Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"]), before);
    vault.run(&["org", "list", "--root-key", kept.to_str().unwrap()]).done();
}

#[test]
fn lost_database_is_not_recreated() {
    for empty in [true, false] {
        let vault = Vault::init(Database::Sqlite);
        let database = vault.data_dir().join("orgvault.db");
        fs::remove_file(&database).unwrap();
        if empty {
            fs::write(&database, "").unwrap();
        }
        let before = Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"]);
        for command in [&["init"][..], &["migrate"], &["org", "list"]] {
            let output = vault.run(command).refused().stderr;
            assert!(output.contains(database.to_str().unwrap()) && output.contains("backup"), "{output}");
            assert!(
                !DANGEROUS.iter().chain(&["orgvault init", "quickstart"]).any(|word| output.contains(word)),
                "{output}"
            );
        }
        quickstart_fails(&vault, &[]).refused();
        assert_eq!(Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"]), before);
    }
}

#[test]
fn relative_database_path_works_for_every_command() {
    let vault = Vault::absent(Database::Sqlite);
    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = binary::command();
        command.args(arguments).args(["--database-url", "sqlite://vault.db", "--data-dir", "."]).current_dir(&home);
        command
    };
    let run = |arguments: &[&str]| Run::of(&mut command(arguments)).done();
    run(&["init"]);
    run(&["org", "create", "Acme"]);
    run(&["migrate"]);
    run(&["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin"]);
    let listed: Value = run(&["org", "list", "--json"]).json();
    assert_eq!(listed[0]["name"], "Acme");
    assert!(home.join("vault.db").exists() && home.join("root.key").exists());
    let server = Server::start(command(&["serve"]), &vault.scratch("output"), &vault.scratch("log"));
    run(&["key", "status"]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn missing_file_is_reported_by_absolute_path() {
    let vault = Vault::absent(Database::Sqlite);
    let home = vault.scratch("home");
    fs::create_dir(&home).unwrap();
    let output = Run::of(binary::command().args(["org", "list"]).current_dir(&home)).refused().stderr;
    assert!(output.contains(home.join("orgvault-data/orgvault.db").to_str().unwrap()), "{output}");
    assert!(output.contains("--data-dir"), "{output}");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}

#[test]
fn served_vault_and_used_address_are_distinguished() {
    let mut vault = Vault::absent(Database::Sqlite);
    let (server, _) = vault.quickstart(&[]);
    let address = server.address.to_string();
    // The same vault at the same address. The lock is the reason, rather than the address.
    for command in [&["quickstart"][..], &["serve"]] {
        let arguments = [command, &["--listen", &address, "--admin-listen", ""]].concat();
        let output = vault.run(&arguments).refused().stderr;
        assert!(output.contains(&format!("quickstart (process {})", server.id())), "{output}");
        assert!(output.contains(vault.data_dir().to_str().unwrap()) && !output.contains("--listen"), "{output}");
    }
    assert_eq!(server.stop(), Some(0));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let flags = ["--listen", "--admin-listen", "--activation-listen"];
    for (refused, command) in flags.into_iter().flat_map(|flag| [(flag, "serve"), (flag, "quickstart")]) {
        let words = flags.map(|flag| format!("{flag}={}", if flag == refused { &taken } else { "127.0.0.1:0" }));
        let words: Vec<&str> = [command].into_iter().chain(words.iter().map(String::as_str)).collect();
        let absent = Vault::absent(Database::Sqlite);
        let vault = if command == "serve" { &vault } else { &absent };
        let output = vault.run(&words).refused().stderr;
        assert!(output.contains(&taken) && output.contains(&format!("Choose another with {refused}")), "{output}");
        assert_eq!(flags.map(|flag| output.contains(flag)), flags.map(|flag| flag == refused), "{output}");
        assert!(!absent.data_dir().exists(), "something was created");
    }
    let free = free_address().to_string();
    let socket = vault.scratch("missing/socket");
    let arguments = ["serve", "--listen", &free, "--admin-listen", "", "--activation-listen"];
    let output = vault.run(&[&arguments[..], &[&format!("unix:{}", socket.display())]].concat()).refused().stderr;
    assert!(output.contains("does not exist") && output.contains("--activation-listen"), "{output}");
    vault.serve();
    vault.stop();
}
