//! Attacks on files: the root key and the other files in the data directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use vault_tests::binary::{self, Run, isolated};
use vault_tests::process::Server;
use vault_tests::samples::s3;
use vault_tests::snapshot::{Snapshot, files, mode};
use vault_tests::sql::Sql;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    a65_wrong_root_key_changes_nothing,
    a74_files_are_closed_to_others,
}

/// Returns every row of the database, if it is accessible.
fn rows(vault: &Vault) -> Vec<Vec<String>> {
    match vault.database() {
        Database::Sqlite => Vec::new(),
        Database::Postgres => Sql::of(vault).everything(),
    }
}

/// Returns a snapshot of all files except the server's lock, which contains the last process.
fn store(vault: &Vault) -> Snapshot {
    Snapshot::of(&vault.data_dir()).without(&["orgvault.db.lock"])
}

/// Creates a stopped vault with a credential.
fn stopped(database: Database) -> Vault {
    let mut vault = Vault::start(database);
    vault.admin_session().save(&s3().request);
    vault.stop();
    vault
}

/// Asserts that all commands refuse to open the vault and change nothing.
#[track_caller]
fn opens_nowhere(vault: &Vault) -> String {
    let before = (store(vault), rows(vault));
    let commands: [&[&str]; 3] = [&["org", "list"], &["org", "create", "Another"], &["account", "list"]];
    let mut output = String::new();
    for command in commands {
        output += &vault.run(command).refused().stderr;
    }
    output += &Server::fail(vault.serve_command()).refused().stderr;
    assert_eq!(store(vault), before.0, "files changed");
    assert_eq!(rows(vault), before.1, "rows changed");
    output
}

fn a65_wrong_root_key_changes_nothing(database: Database) {
    let mut vault = stopped(database);
    let key = vault.data_dir().join("root.key");
    let right = fs::read(&key).unwrap();
    // A key with one wrong bit, one of another deployment, and an invented one.
    let other = Vault::init(database);
    let mut flipped = right.clone();
    flipped[31] ^= 1;
    let counted: Vec<u8> = (0..32).collect();
    for wrong in [
        flipped,
        fs::read(other.data_dir().join("root.key")).unwrap(),
        counted,
        b"0123456789abcdef0123456789abcdef".to_vec(),
    ] {
        fs::write(&key, &wrong).unwrap();
        let output = opens_nowhere(&vault);
        for secret in [&wrong, &right] {
            assert!(
                !output.contains(&hex::encode(secret)) && !output.contains(&*String::from_utf8_lossy(secret)),
                "{output}"
            );
        }
    }
    fs::write(&key, right).unwrap();
    vault.serve();
    assert_eq!(vault.admin_session().list().len(), 1);
}

#[test]
fn a66_only_valid_root_key_file_is_read() {
    let vault = stopped(Database::Sqlite);
    let own = vault.data_dir().join("root.key");
    let key = fs::read(&own).unwrap();
    assert_eq!(key.len(), 32);
    let home = vault.scratch("keys");
    fs::create_dir(&home).unwrap();
    let close = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let file = |name: &str, content: &[u8], mode: u32| {
        let path = home.join(name);
        fs::write(&path, content).unwrap();
        close(&path, mode);
        path
    };
    close(&home, 0o700);

    let mut flawed = vec![
        home.join("missing"),
        file("empty", b"", 0o600),
        file("short", &key[..31], 0o600),
        file("long", &[&key[..], b"\n"].concat(), 0o600),
        file("twice", &[&key[..], &key].concat(), 0o600),
        file("zero", &[0; 32], 0o600),
        file("hex", hex::encode(&key).as_bytes(), 0o600),
        file("hex-line", format!("{}\n", hex::encode(&key)).as_bytes(), 0o600),
    ];
    for mode in [0o644, 0o640, 0o604, 0o660, 0o602, 0o620, 0o601, 0o666, 0o777] {
        flawed.push(file(&format!("mode-{mode:o}"), &key, mode));
    }
    let directory = home.join("directory");
    fs::create_dir(&directory).unwrap();
    flawed.push(directory);
    let pipe = home.join("pipe");
    assert!(Command::new("mkfifo").arg("--mode=600").arg(&pipe).status().unwrap().success());
    flawed.push(pipe);
    flawed.extend(["/dev/zero", "/dev/null", "/dev/urandom"].map(Into::into));
    // A symbolic link that other users can point to another key.
    let sound = file("sound", &key, 0o600);
    for (name, mode) in [("open", 0o777), ("sticky", 0o1777), ("group", 0o770)] {
        let place = home.join(name);
        fs::create_dir(&place).unwrap();
        close(&place, mode);
        symlink(&sound, place.join("root.key")).unwrap();
        flawed.push(place.join("root.key"));
    }
    symlink(home.join("nowhere"), home.join("dangling")).unwrap();
    flawed.push(home.join("dangling"));
    symlink(home.join("mode-644"), home.join("to-open-file")).unwrap();
    flawed.push(home.join("to-open-file"));
    for path in &flawed {
        let before = (store(&vault), rows(&vault));
        let mut serve = vault.serve_command();
        serve.arg("--root-key").arg(path);
        let output = Server::fail(serve).refused().stderr;
        assert!(output.contains(path.to_str().unwrap()), "{} is not named: {output}", path.display());
        assert_eq!((store(&vault), rows(&vault)), before, "{}", path.display());
    }

    // Like orchestrators mount secrets: a link to a link into a timestamped directory.
    let moment = home.join("..2026_11_20_12_00_00.123456789");
    fs::create_dir(&moment).unwrap();
    fs::write(moment.join("root.key"), &key).unwrap();
    close(&moment.join("root.key"), 0o400);
    symlink(&moment, home.join("..data")).unwrap();
    symlink("..data/root.key", home.join("mounted")).unwrap();
    for path in [home.join("mounted"), sound] {
        let mut serve = vault.serve_command();
        serve.arg("--root-key").arg(path);
        assert_eq!(Server::start(serve, &vault.scratch("output"), &vault.scratch("log")).stop(), Some(0));
    }
}

fn a74_files_are_closed_to_others(database: Database) {
    let mut vault = Vault::absent(database);
    let with_open_umask = |command: &Command| {
        let mut shell = isolated(Command::new("sh"));
        shell.args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(binary::path()).args(command.get_args());
        shell
    };
    let run = |vault: &Vault, arguments: &[&str]| Run::of(&mut with_open_umask(&vault.command(arguments))).done();
    let check = |vault: &Vault| {
        assert_eq!(mode(&vault.data_dir()), 0o700);
        let files = files(&vault.data_dir());
        for file in &files {
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
        files
    };
    run(&vault, &["init"]);
    run(&vault, &["org", "create", "Acme"]);
    assert!(check(&vault).iter().any(|file| file.ends_with("root.key")));
    let server =
        Server::start(with_open_umask(&vault.serve_command()), &vault.scratch("output"), &vault.scratch("log"));
    run(&vault, &["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin"]);
    run(&vault, &["account", "re-enrol", "--email", "a@example.com"]);
    let served = check(&vault);
    if database == Database::Sqlite {
        let names: Vec<_> = served.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        for name in ["orgvault.db", "orgvault.db-wal", "orgvault.db-shm", "orgvault.db.key"] {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
    }
    assert_eq!(server.stop(), Some(0));
    check(&vault);
    vault.serve();
    vault.stop();
    check(&vault);
}
