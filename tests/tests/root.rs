//! Commands that root runs on the directory of a service's user. The content of that directory cannot misuse root's
//! rights. For other users, these tests do nothing.

use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use vault_tests::binary::Run;
use vault_tests::process::{Server, own_address};
use vault_tests::snapshot::files;
use vault_tests::{Database, Vault};

/// A user and a group without an account.
const OWNER: u32 = 61_234;
const GROUP: u32 = 61_235;
const OTHER: u32 = 62_345;

/// Creates a vault in another user's directory. Returns `None` unless the test runs as root.
fn place(owner: u32, group: u32) -> Option<Vault> {
    if !geteuid().is_root() {
        return None;
    }
    let vault = Vault::absent(Database::Sqlite);
    let home = vault.scratch("");
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    make(&vault.data_dir(), owner, group);
    Some(vault)
}

fn make(path: &Path, owner: u32, group: u32) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    chown(path, Some(owner), Some(group)).unwrap();
}

/// Creates a file that only root can read.
fn of_root(vault: &Vault, name: &str, content: &[u8]) -> PathBuf {
    let path = vault.scratch(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

#[track_caller]
fn assert_all_belong_to(owner: u32, group: u32, directory: &Path) {
    for file in files(directory) {
        let found = fs::symlink_metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid()), (owner, group), "{}", file.display());
    }
}

fn status(task: &Path, name: &str) -> Vec<String> {
    let status = fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap().to_owned();
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn process_becomes_directory_owner_permanently() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    assert_eq!(vault.run(&["org", "create", "Acme"]).done().stderr, "");
    let output = vault.run(&["org", "create", "Other", "--log-level", "debug"]).done().stderr;
    assert!(output.contains("run as user 61234"), "{output}");
    let socket = vault.data_dir().join("activation");
    let mut serve = vault.serve_command();
    serve.arg("--activation-listen").arg(format!("unix:{}", socket.display()));
    let server = Server::start(serve, &vault.scratch("output"), &vault.scratch("log"));
    let process = PathBuf::from(format!("/proc/{}", server.id()));
    for task in fs::read_dir(process.join("task")).unwrap() {
        let task = task.unwrap().path();
        assert_eq!(status(&task, "Uid"), ["61234"; 4]);
        assert_eq!(status(&task, "Gid"), ["61235"; 4]);
        assert_eq!(status(&task, "Groups"), ["61235"], "no group of root's is left");
        for capabilities in ["CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(&task, capabilities), ["0000000000000000"]);
        }
    }
    // The kernel assigns the files of a non-dumpable process to root.
    assert_eq!(fs::metadata(process.join("environ")).unwrap().uid(), 0, "its memory is closed to its own user");
    assert_eq!(fs::symlink_metadata(&socket).unwrap().uid(), OWNER);
    assert_all_belong_to(OWNER, GROUP, &vault.data_dir());
    assert_eq!(server.stop(), Some(0), "{}", vault.log());
    assert_all_belong_to(OWNER, GROUP, &vault.data_dir());
}

#[test]
fn process_gets_groups_of_owner_account() {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let account = accounts.lines().map(fields).find(|fields| fields[0] == "daemon").unwrap();
    let (uid, gid): (u32, u32) = (account[2].parse().unwrap(), account[3].parse().unwrap());
    let Some(vault) = place(uid, GROUP) else { return };
    let output = vault.run(&["init", "--log-level", "debug"]).done().stderr;
    assert!(output.contains("run as user daemon"), "{output}");
    assert_all_belong_to(uid, gid, &vault.data_dir());
    let refused = vault.run(&["init"]).refused().stderr;
    assert!(!refused.contains("run as user"), "{refused}");
    let unreadable = of_root(&vault, "backup", b"");
    let refused = vault.run(&["restore", "--replace", unreadable.to_str().unwrap()]).refused().stderr;
    assert!(refused.contains("run as user daemon"), "a denied access is reported with the user: {refused}");
}

/// Attack: the server would open its lock file through a link, change its owner and truncate it.
#[test]
fn link_at_lock_path_discloses_nothing() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    let precious = of_root(&vault, "precious", b"precious");
    let lock = vault.data_dir().join("orgvault.db.lock");
    for kind in ["symbolic", "hard"] {
        fs::remove_file(&lock).unwrap();
        match kind {
            "symbolic" => symlink(&precious, &lock).unwrap(),
            _ => fs::hard_link(&precious, &lock).unwrap(),
        }
        let output = vault.run(&["migrate"]).refused().stderr;
        assert!(output.contains("orgvault.db.lock"), "{output}");
        let found = fs::metadata(&precious).unwrap();
        assert_eq!((found.uid(), fs::read(&precious).unwrap()), (0, b"precious".to_vec()), "{kind}");
    }
}

#[test]
fn paths_in_owner_settings_are_opened_as_owner() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    // Move the key to where only root can read it.
    let key = of_root(&vault, "root.key", &fs::read(vault.data_dir().join("root.key")).unwrap());
    fs::remove_file(vault.data_dir().join("root.key")).unwrap();
    let file = vault.data_dir().join("orgvault.toml");
    fs::write(&file, format!("root-key-file = {key:?}\n")).unwrap();
    chown(&file, Some(OWNER), Some(GROUP)).unwrap();
    let refused = vault.run(&["org", "list"]).refused().stderr;
    assert!(refused.contains("Permission denied"), "{refused}");
    // Root's own flag or variable may name it.
    vault.run(&["org", "list", "--root-key-file", key.to_str().unwrap()]).done();
    Run::of(vault.command(&["org", "list"]).env("ORGVAULT_ROOT_KEY_FILE", &key)).done();

    // The settings file does not give access to files that only root can read.
    let secret = of_root(&vault, "secret", b"unguessable = 1\n");
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    let refused = vault.run(&["org", "list", "--root-key-file", key.to_str().unwrap()]);
    assert!(refused.status != Some(0) && !refused.stderr.contains("unguessable"), "{refused:?}");
}

#[test]
fn paths_in_flags_of_root_are_opened_as_root() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    vault.run(&["org", "create", "Acme"]).done();
    let password = of_root(&vault, "password", b"a password of root's choice\n");
    let account = ["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin"];
    vault.run(&[&account[..], &["--password-file", password.to_str().unwrap()]].concat()).done();
    let settings = of_root(&vault, "settings", b"max-ttl = 60\n");
    vault.run(&["org", "list", "--config", settings.to_str().unwrap()]).done();
}

#[test]
fn settings_file_must_belong_to_root_or_owner() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    let key = of_root(&vault, "root.key", &fs::read(vault.data_dir().join("root.key")).unwrap());
    fs::remove_file(vault.data_dir().join("root.key")).unwrap();
    let content = format!("data-dir = {:?}\nroot-key-file = {key:?}\n", vault.data_dir());
    let settings = of_root(&vault, "orgvault.toml", content.as_bytes());
    let run = || {
        Run::of(vault_tests::binary::command().args(["org", "list", "--log-level", "debug", "--config"]).arg(&settings))
    };
    let output = run().done().stderr;
    assert!(output.contains("run as user 61234"), "{output}");
    chown(&settings, Some(OWNER), None).unwrap();
    let output = run().refused().stderr;
    assert!(output.contains("belongs to user 61234, and you are root"), "it names what root alone may open: {output}");
}

#[test]
fn privileged_port_is_bound_before_switching_user() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    let address = SocketAddr::new(own_address(), 443);
    let mut server =
        Server::spawn_at(address, vault.command(&["serve"]), &vault.scratch("output"), &vault.scratch("log"));
    server.wait_until_ready();
    assert_eq!(status(&PathBuf::from(format!("/proc/{}", server.id())), "Uid"), ["61234"; 4]);
    assert_eq!(server.stop(), Some(0), "{}", vault.log());
}

#[test]
fn path_that_others_can_redirect_is_refused() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    let (home, others) = (vault.scratch(""), vault.scratch("others"));
    make(&others, OTHER, OTHER);
    fs::set_permissions(&others, Permissions::from_mode(0o755)).unwrap();
    fs::rename(vault.data_dir(), others.join("data")).unwrap();
    let run = |path: &Path| {
        let mut command = vault_tests::binary::command();
        Run::of(command.args(["org", "list", "--data-dir"]).arg(path))
    };
    let output = run(&others.join("data")).refused().stderr;
    assert!(output.contains("62345") && output.contains(others.to_str().unwrap()), "{output}");
    symlink(others.join("data"), home.join("link")).unwrap();
    run(&home.join("link")).refused();
    // Nothing is created in another user's directory.
    run(&others.join("new")).refused();
    let mut init = vault_tests::binary::command();
    Run::of(init.args(["init", "--data-dir"]).arg(others.join("new"))).refused();
    assert!(!others.join("new").exists());
    // A path in which the owner could replace a directory of root.
    chown(&others, Some(OWNER), Some(GROUP)).unwrap();
    run(&others.join("data")).done();
    fs::create_dir(others.join("roots")).unwrap();
    fs::set_permissions(others.join("roots"), Permissions::from_mode(0o755)).unwrap();
    fs::rename(others.join("data"), others.join("roots/data")).unwrap();
    run(&others.join("roots/data")).refused();
}

#[test]
fn directory_of_root_with_foreign_database_names_user() {
    let Some(vault) = place(0, 0) else { return };
    vault.run(&["init"]).done();
    vault.run(&["org", "list"]).done();
    chown(vault.data_dir().join("orgvault.db"), Some(OWNER), Some(GROUP)).unwrap();
    let output = vault.run(&["org", "list"]).refused().stderr;
    assert!(output.contains("sudo -u '#61234' orgvault"), "{output}");
    assert!(output.contains("belongs to user 61234, and you are root"), "{output}");
    // The same database, named in a settings file.
    let elsewhere = vault.scratch("elsewhere");
    make(&elsewhere, OWNER, GROUP);
    fs::write(
        vault.data_dir().join("orgvault.toml"),
        format!("database-url = \"sqlite://{}/x.db\"\n", elsewhere.display()),
    )
    .unwrap();
    fs::remove_file(vault.data_dir().join("orgvault.db")).unwrap();
    let output = vault.run(&["org", "list"]).refused().stderr;
    assert!(output.contains("sudo -u '#61234' orgvault"), "{output}");
}

#[test]
fn directory_that_its_owner_cannot_reach_is_refused() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    fs::set_permissions(vault.scratch(""), Permissions::from_mode(0o700)).unwrap();
    let output = vault.run(&["org", "list"]).refused().stderr;
    assert!(output.contains("user 61234 cannot reach"), "{output}");
    assert!(output.contains(vault.data_dir().to_str().unwrap()), "{output}");
}

#[test]
fn group_readable_root_key_opens_for_both() {
    let Some(vault) = place(OWNER, GROUP) else { return };
    vault.run(&["init"]).done();
    let key = of_root(&vault, "root.key", &fs::read(vault.data_dir().join("root.key")).unwrap());
    fs::set_permissions(&key, Permissions::from_mode(0o440)).unwrap();
    chown(&key, Some(0), Some(GROUP)).unwrap();
    let flag = ["--root-key-file", key.to_str().unwrap()];
    vault.run(&[&["org", "list"][..], &flag].concat()).done();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o7777, 0o440, "its mode is unchanged");
}
