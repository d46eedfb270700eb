//! Files of other users, which commands do not obey. For users other than root, these tests do nothing.

use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use vault_tests::binary::Run;
use vault_tests::snapshot::Snapshot;
use vault_tests::{Database, Vault};

/// A user without an account.
const OTHER: u32 = 61_234;

/// Returns a vault of root. `None` unless the test runs as root, which changing owners requires.
fn vault_of_root() -> Option<Vault> {
    geteuid().is_root().then(|| Vault::init(Database::Sqlite))
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
    let refused = vault.run(&["init", &url]).refused().stderr;
    assert!(refused.contains(elsewhere.to_str().unwrap()) && refused.contains("sudo -u '#61234'"), "{refused}");
}
