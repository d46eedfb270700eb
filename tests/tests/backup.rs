//! Backups: taken while a server runs, consistent.

use crate::upgrade::database_key;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::binary::Run;
use vault_tests::earlier::keyed;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::{Database, Vault};

const LIMIT: Duration = Duration::from_secs(60);

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// Eight writers alternate between two namespaces each. At every moment, the first contains as many credentials as the
/// second, or one more.
#[test]
fn backup_during_writes_is_consistent() {
    const WRITERS: usize = 8;
    let vault = Vault::start(Database::Sqlite);
    let admin = vault.admin();
    let sessions: Vec<_> = (0..2).map(|_| admin.log_in(&vault.client())).collect();
    let acknowledged: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let mut backups = Vec::new();
    thread::scope(|scope| {
        for (writer, count) in acknowledged.iter().enumerate() {
            let session = sessions[writer % sessions.len()].on(&vault.client());
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && count.load(Ordering::Acquire) < 900 {
                    let done = count.load(Ordering::Acquire);
                    let side = if done % 2 == 0 { "first" } else { "second" };
                    session.save(&small(&format!("{side}/{writer}"), usize::try_from(done).unwrap()));
                    count.store(done + 1, Ordering::Release);
                }
            });
        }
        for number in 0..3 {
            let file = vault.scratch(&format!("{number}.backup"));
            let before: Vec<u64> = acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            vault.run(&["backup", text(&file)]).done();
            let after: Vec<u64> = acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            backups.push((file, before, after));
        }
        stop.store(true, Ordering::Relaxed);
    });
    for (number, (file, before, after)) in backups.iter().enumerate() {
        let directory = vault.scratch(&format!("restored-{number}"));
        let key = vault.data_dir().join("root.key");
        let there = ["--data-dir", text(&directory), "--root-key", text(&key)];
        vault.run(&[&["restore", text(file)], &there[..]].concat()).done();
        let count = |namespace: String| {
            let freeze = ["namespace", "freeze", &namespace, "--org", "Acme"];
            vault.json(&[&freeze[..], &there[..]].concat())["credentials"].as_u64().unwrap()
        };
        for writer in 0..WRITERS {
            let (first, second) = (count(format!("first/{writer}")), count(format!("second/{writer}")));
            assert!(first == second || first == second + 1, "writer {writer}: {first} and {second}");
            let (least, most) = (before[writer], after[writer] + 1);
            assert!(
                (least..=most).contains(&(first + second)),
                "writer {writer}: {} of {least} to {most}",
                first + second
            );
        }
    }
}

#[test]
fn server_creates_scheduled_backups_and_keeps_newest() {
    let mut vault = Vault::init(Database::Sqlite);
    let directory = vault.scratch("backups");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("orgvault-notes.backup"), "not ours").unwrap();
    // Files that a killed backup left.
    fs::write(directory.join(".orgvault-20200101T000000Z.backup.unfinished"), "").unwrap();
    fs::write(directory.join(".orgvault-20200101T000000Z.backup.unfinished.db"), "pages").unwrap();
    let flags = ["--backup-every", "1s", "--backup-to", text(&directory), "--backup-keep", "2"];
    for wrong in [&flags[..2], &flags[2..4]] {
        let output = Server::fail(vault.command(&[&["serve"], wrong].concat())).misused().stderr;
        assert!(output.contains("--backup-every") && output.contains("--backup-to"), "{output}");
    }
    let nowhere = ["serve", "--backup-every", "1d", "--backup-to", "/nonexistent/backups"];
    Server::fail(vault.command(&nowhere)).refused().says("/nonexistent/backups is not a directory");

    vault.serve_with(&flags);
    vault.admin();
    let began = Instant::now();
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 4 {
        seen.extend(names(&directory).into_iter().filter(|name| name.starts_with("orgvault-2")));
        assert!(began.elapsed() < LIMIT, "{}", vault.log());
        thread::yield_now();
    }
    assert!(vault.metric("orgvault_backups_total") > 0);
    assert!(vault.metric("orgvault_backup_interval_seconds") == 1 && vault.metric("orgvault_disk_free_bytes") > 0);
    vault.stop();
    let left = names(&directory);
    assert_eq!(left.len(), 3, "two backups and a file that is not ours: {left:?}");
    assert!(left.contains(&"orgvault-notes.backup".to_owned()), "{left:?}");
    let key = vault.data_dir().join("root.key");
    let there = vault.scratch("restored");
    let restored = vault.json(&["restore", text(&directory), "--data-dir", text(&there), "--root-key", text(&key)]);
    let newest = left.iter().filter(|name| name.starts_with("orgvault-2")).max().unwrap();
    assert_eq!(restored["restored"]["backup"], text(&directory.join(newest)));

    let postgres = Vault::init(Database::Postgres);
    Server::fail(postgres.command(&[&["serve"], &flags[..]].concat())).misused().says("pg_dump");
}

/// A backup of a newer version may contain rows that this version does not understand.
#[test]
fn backup_with_a_newer_schema_is_refused() {
    let vault = Vault::init(Database::Sqlite);
    let (backup, unpacked, newer) = (vault.scratch("one.backup"), vault.scratch("unpacked"), vault.scratch("newer"));
    vault.run(&["backup", text(&backup)]).done();
    fs::create_dir(&unpacked).unwrap();
    let tar = |arguments: &[&str]| Run::of(Command::new("tar").args(arguments).current_dir(&unpacked)).done();
    tar(&["--extract", "--file", text(&backup)]);
    keyed(&unpacked.join("orgvault.db"), &database_key(&vault))
        .execute("INSERT INTO schema_versions (version, applied_at) VALUES ('9999', 0)", ())
        .unwrap();
    let members = tar(&["--list", "--file", text(&backup)]).stdout;
    let members: Vec<&str> = members.lines().collect();
    tar(&[&["--create", "--format=ustar", "--file", text(&newer)], &members[..]].concat());
    let output = vault.run(&["restore", text(&newer), "--replace"]).refused().stderr;
    for word in ["9999", "newer", "Nothing was changed"] {
        assert!(output.contains(word), "{word}: {output}");
    }
    vault.run(&["restore", text(&backup), "--replace"]).done();
}

#[test]
fn stolen_data_directory_is_useless_without_root_key() {
    let vault = Vault::absent(Database::Sqlite);
    let keys = vault.scratch("keys");
    fs::create_dir(&keys).unwrap();
    let key = keys.join("root.key");
    let with_key = ["--root-key", text(&key)];
    let output = vault.run(&[&["init"], &with_key[..]].concat()).done().stdout;
    assert!(!output.contains("same directory"), "{output}");
    vault.run(&[&["org", "create", "Acme"], &with_key[..]].concat()).done();
    let create = ["account", "create", "--org", "Acme", "--email", "canary@example.com", "--role", "admin"];
    vault.run(&[&create[..], &with_key[..]].concat()).done();
    let backup = vault.scratch("one.backup");
    vault.run(&[&["backup", text(&backup)], &with_key[..]].concat()).done();

    let stolen = vault.scratch("stolen");
    Run::of(Command::new("cp").arg("-a").arg(vault.data_dir()).arg(&stolen)).done();
    assert_eq!(names(&stolen), ["orgvault.anchor", "orgvault.db", "orgvault.db.key", "orgvault.db.lock"]);
    for file in [stolen.join("orgvault.db"), stolen.join("orgvault.db.key"), backup.clone()] {
        let bytes = fs::read(&file).unwrap();
        for known in ["canary@example.com", "Acme", "SQLite format 3"] {
            assert!(
                !bytes.windows(known.len()).any(|window| window == known.as_bytes()),
                "{known} in {}",
                file.display()
            );
        }
    }
    let there = ["--data-dir", text(&stolen)];
    // The output of a default `init` contains the commands for this, and they succeed.
    let default = Vault::absent(Database::Sqlite);
    let output = default.run(&["init"]).done().stdout;
    let advice = output.split("To keep it apart: ").nth(1).and_then(|rest| rest.split(" (or").next()).unwrap();
    let moved = advice.replace("OTHER-DISK", text(&keys.join("other")));
    fs::create_dir(keys.join("other")).unwrap();
    let list = default.command(&["org", "list"]);
    let words: Vec<_> = list.get_args().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let script = format!("{moved} && {} {}", list.get_program().to_str().unwrap(), words.join(" "));
    Run::of(Command::new("sh").args(["-c", &script])).done();
    assert!(!default.data_dir().join("root.key").exists());

    let file = vault.scratch("stolen.backup");
    for command in [
        &["org", "list"][..],
        &["account", "list"],
        &["backup", text(&file)],
        &["restore", text(&backup), "--replace"],
        &["account", "re-enrol", "--email", "canary@example.com"],
    ] {
        let output = vault.run(&[command, &there[..]].concat()).refused().stderr;
        assert!(output.contains("root.key not found"), "{command:?}: {output}");
    }
    let other = Vault::init(Database::Sqlite);
    fs::copy(other.data_dir().join("root.key"), stolen.join("root.key")).unwrap();
    vault.run(&[&["org", "list"], &there[..]].concat()).refused().says("needs root key");
}
