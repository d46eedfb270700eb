//! Root keys that commands print.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use vault_tests::binary::Run;
use vault_tests::process::Server;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    vault_works_with_root_key_from_command,
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn key(first: u8) -> [u8; 32] {
    std::array::from_fn(|n| first ^ (n as u8).wrapping_mul(97).rotate_left(3))
}

/// Writes a program that runs these shell commands.
fn program(path: &Path, commands: &str) {
    fs::write(path, format!("#!/bin/sh\n{commands}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Runs a command with an environment variable, and with the necessary rights on PostgreSQL.
fn run(vault: &Vault, variable: (&str, &str), arguments: &[&str]) -> Run {
    Run::of(vault.owner_command(arguments).env(variable.0, variable.1))
}

/// Waits until `is_done`.
#[track_caller]
fn wait_until(is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20)); // polling interval
    }
}

fn vault_works_with_root_key_from_command(database: Database) {
    let vault = Vault::absent(database);
    let (print, runs) = (vault.scratch("print key"), vault.scratch("runs"));
    fs::write(vault.scratch("old"), hex::encode(key(1))).unwrap();
    fs::write(vault.scratch("new"), key(2)).unwrap();
    program(&print, &format!("cd '{}'; echo x >> runs; cat \"$1\"", text(&vault.scratch("."))));
    let count = || fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let value = |name: &str| format!("command:'{}' {name}", text(&print));
    let (old, new) = (value("old"), value("new"));
    let variable = ("ORGVAULT_ROOT_KEY", &*old);

    // The first run, which creates no key, with the words of the command in a list.
    fs::write(vault.scratch("settings.toml"), format!("root-key = [\"command:{}\", \"old\"]\n", text(&print))).unwrap();
    let mut create = vault.owner_command(&["init", "--config", text(&vault.scratch("settings.toml"))]);
    let created = Run::of(&mut create).done().stdout;
    assert!(created.contains("The root key is the output of command:") && count() == 1, "{created}");
    assert!(!vault.data_dir().join("root.key").exists());
    run(&vault, variable, &["org", "create", "Acme"]).done();
    let before = count();
    let mut command = vault.owner_command(&["serve"]);
    command.env(variable.0, variable.1);
    if database == Database::Sqlite {
        fs::create_dir(vault.scratch("backups")).unwrap();
        command.args(["--backup-every=1h", "--backup-to", text(&vault.scratch("backups"))]);
    }
    let server = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
    if database == Database::Sqlite {
        wait_until(|| vault.log().contains("created and checked a backup"));
    }
    assert_eq!(server.stop(), Some(0), "{}", vault.log());
    assert_eq!(count() - before, if database == Database::Sqlite { 2 } else { 1 }, "{}", vault.log());

    // To the key of another command, and back to one in a file.
    let rotate = ["key", "rotate", "--root", "--new-root-key"];
    run(&vault, variable, &[&rotate[..], &[&new]].concat()).done().prints("--root-key=command:").prints(" new");
    run(&vault, variable, &["org", "list"]).refused().says("needs root key").says("set --root-key to its location");
    let file = vault.data_dir().join("root.key");
    run(&vault, ("ORGVAULT_ROOT_KEY", &new), &[&rotate[..], &[text(&file)]].concat()).done();
    assert!(vault.run(&["org", "list"]).done().stdout.contains("Acme"));
    assert!(!vault.log().contains(&hex::encode(key(1))));
}

#[test]
fn commands_that_print_no_root_key_are_refused() {
    let vault = Vault::init(Database::Sqlite);
    let script = vault.scratch("print-key");
    let data = vault.scratch("data-file");
    fs::write(&data, "s3cret").unwrap();
    for (command, expected) in [
        ("/nonexistent/print-key", "was not found. Install it"),
        ("no-such-program-4711", "was not found. Install it"),
        (text(&data), "is not executable by the user of this process"),
    ] {
        let refused = vault.run(&["org", "list", &format!("--root-key=command:{command}")]).refused().stderr;
        assert!(refused.contains("--root-key: the command `") && refused.contains(expected), "{refused}");
    }
    let pid = vault.scratch("pid");
    let background = format!("sleep 600 & echo $! > '{}'", text(&pid));
    let key = hex::encode(key(1));
    for (commands, expected) in [
        (
            r"printf 'denied\033[31m\nfor s3' >&2; exit 3",
            r"exited with status 3. Run it as the user of the vault, until it prints the key: denied\u{1b}[31m\nfor s3",
        ),
        ("kill -9 $$", "was killed by signal 9"),
        ("echo s3cret; exit 1", "exited with status 1"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "exited with status 1"),
        ("yes s3cret", "prints more than a root key"),
        (
            "printf s3cret",
            "its output has 6 bytes; expected 32 bytes, 64 hexadecimal digits or 44 characters of base64",
        ),
        ("true", "its output has 0 bytes"),
        ("printf %064d 0", "its output does not contain a random key (all bytes are zero)"),
        (&format!("echo {key}"), "needs root key"),
        (&format!("{background}; echo {key}"), "needs root key"),
        (&format!("{background}; echo s3cret; wait"), "did not exit within 30 s and was killed"),
    ] {
        program(&script, commands);
        let refused = vault.run(&["org", "list", &format!("--root-key=command:{}", text(&script))]).refused().stderr;
        assert!(refused.contains("--root-key") && refused.contains(expected), "{commands}: {refused}");
        assert!(!refused.contains("s3cret") && !refused.contains(&key) && refused.len() < 1_300, "{refused}");
        if commands.contains("sleep") {
            let id = fs::read_to_string(&pid).unwrap();
            let status = format!("/proc/{}/stat", id.trim());
            wait_until(|| fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z ")));
        }
    }
    let rotate = ["key", "rotate", "--root", "--new-root-key=command:/nonexistent/x"];
    vault.run(&rotate).refused().says("--new-root-key: the command `x` was not found");
}
