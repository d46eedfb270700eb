//! Files of other users, which commands do not obey. For users other than root, these tests do nothing.

use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use vault_tests::binary::{self, Run};
use vault_tests::skip;
use vault_tests::snapshot::{Snapshot, files};
use vault_tests::{Database, Vault};

/// A user without an account.
const OTHER: u32 = 61_234;

/// Returns a vault of root. `None` unless the test runs as root, which changing owners requires.
fn vault_of_root() -> Option<Vault> {
    if !geteuid().is_root() {
        skip!("only root can create the directories of another user", None);
    }
    Some(Vault::init(Database::Sqlite))
}

fn give(path: &Path) {
    chown(path, Some(OTHER), Some(OTHER)).unwrap();
}

#[test]
fn root_is_refused_for_vault_of_another_user() {
    let Some(vault) = vault_of_root() else { return };
    let database = vault.data_dir().join("orgvault.db");
    let before = Snapshot::of(&vault.data_dir());
    for path in [&database, &vault.data_dir()] {
        give(path);
        for command in [&["init"][..], &["quickstart"], &["serve"], &["org", "create", "Two words"]] {
            let refused = vault.run(command).refused().stderr;
            let shown = format!("{} belongs to user 61234, and you are root", path.display());
            assert!(refused.contains(&shown) && refused.contains("`sudo -u '#61234' "), "{refused}");
            assert_eq!(refused.contains("org create 'Two words'`"), command.len() > 1, "{refused}");
        }
    }
    let mut command = vault.command(&["org", "list"]);
    let refused = Run::of(command.env("ORGVAULT_MAX_TTL", "1h")).refused().stderr;
    assert!(refused.contains("`sudo --preserve-env=ORGVAULT_MAX_TTL -u '#61234' "), "{refused}");
    assert_eq!(Snapshot::of(&vault.data_dir()), before, "files changed");
    // The database in another user's directory, whether it exists or not.
    let elsewhere = vault.scratch("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    give(&elsewhere);
    let url = format!("--database-url=sqlite://{}/x.db", elsewhere.display());
    chown(vault.data_dir(), Some(0), Some(0)).unwrap();
    vault.run(&["init", &url]).refused().says(elsewhere.to_str().unwrap()).says("sudo -u '#61234'");
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_that_other_users_can_write_are_not_obeyed() {
    let Some(vault) = vault_of_root() else { return };
    let (directory, file) = (vault.data_dir(), vault.data_dir().join("orgvault.toml"));
    let outside = vault.scratch("outside.toml");
    for path in [&file, &outside] {
        fs::write(path, "max-ttl = \"obeyed\"\n").unwrap();
    }
    let commands = [&["org", "list"][..], &["init"], &["quickstart"], &["serve"]];
    let refused = |expected: &[&str]| {
        for command in commands {
            let refused = vault.run(command).refused().stderr;
            assert!(expected.iter().all(|part| refused.contains(part)) && !refused.contains("max-ttl"), "{refused}");
        }
    };
    let obeyed = || vault.run(&["org", "list"]).misused().stderr.contains("line 1, max-ttl");
    assert!(obeyed());
    give(&file);
    refused(&["belongs to user 61234", &format!("`chown 0 {}`", file.display())]);
    let config = vault.run(&["org", "list", "--config", outside.to_str().unwrap()]).misused();
    assert!(config.stderr.contains("line 1, max-ttl"), "{config:?}");
    give(&outside);
    vault.run(&["org", "list", "--config", outside.to_str().unwrap()]).refused();
    // A link is not better than its target.
    fs::remove_file(&file).unwrap();
    symlink(&outside, &file).unwrap();
    refused(&["belongs to user 61234"]);
    chown(&outside, Some(0), Some(0)).unwrap();
    assert!(obeyed());
    for open in [0o664, 0o646] {
        mode(&outside, open);
        refused(&[&format!("has mode {open:04o}"), &format!("`chmod go-w {}`", file.display())]);
    }
    mode(&outside, 0o644);
    for open in [0o770, 0o1777] {
        mode(&directory, open);
        refused(&[&format!("has mode {open:04o}"), &format!("`chmod go-w {}`", directory.display())]);
    }
    // A volume of Kubernetes with the group of this process.
    mode(&directory, 0o2770);
    assert!(obeyed());
    mode(&directory, 0o2777);
    refused(&["has mode 2777"]);
}

/// Attack: another user prepares the data directory in a shared working directory such as /tmp, or the author of a
/// repository.
#[test]
fn data_directory_in_working_directory_is_obeyed_only_if_created_here() {
    let Some(vault) = vault_of_root() else { return };
    let shared = vault.scratch("shared");
    let directory = shared.join("orgvault-data");
    fs::create_dir_all(&directory).unwrap();
    mode(&shared, 0o1777);
    fs::write(directory.join("orgvault.toml"), "max-ttl = \"obeyed\"\nactivation-listen = \"unix:stolen\"\n").unwrap();
    let run = |command: &[&str]| Run::of(binary::command().args(command).current_dir(&shared));
    let commands = [&["org", "list"][..], &["init"], &["quickstart"], &["serve"]];
    for command in commands {
        run(command).refused().says("has mode 0755").says("`chmod 700 ");
    }
    give(&directory);
    for command in commands {
        run(command).refused().says("belongs to user 61234");
    }
    // Clients do not read it.
    let mut exec = binary::command();
    exec.args(["exec", "--namespace", "a", "--", "true"]).current_dir(&shared).env("XDG_STATE_HOME", &shared);
    let exec = Run::of(&mut exec);
    assert!(exec.stderr.contains("--activation-url is missing"), "{exec:?}");
    chown(&directory, Some(0), Some(0)).unwrap();
    mode(&directory, 0o700);
    assert!(run(&["org", "list"]).misused().stderr.contains("line 1, max-ttl"));
}

#[test]
fn vault_is_not_created_among_other_files() {
    let vault = Vault::absent(Database::Sqlite);
    let directory = vault.data_dir();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("notes.txt"), "").unwrap();
    for command in [&["init"][..], &["quickstart"]] {
        vault.run(command).refused().says("contains notes.txt").says("--data-dir");
    }
    assert_eq!(files(&directory).len(), 1, "files were created");
    fs::remove_file(directory.join("notes.txt")).unwrap();
    // Files that users install first.
    fs::write(directory.join("orgvault.toml"), "max-ttl = \"1h\"\n").unwrap();
    fs::create_dir(directory.join("lost+found")).unwrap();
    vault.run(&["init"]).done();
}
