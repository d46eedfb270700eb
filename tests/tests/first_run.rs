//! Creation of a vault, in an empty or non-empty location. Nothing remains incomplete, nothing that may belong to
//! another vault is replaced, and no message suggests the creation of a second vault.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use vault_tests::binary::Run;
use vault_tests::process::Server;
use vault_tests::snapshot::Snapshot;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
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
