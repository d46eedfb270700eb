//! Commands and servers at the same time, and the creation of a vault in a directory with files.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::snapshot::Snapshot;
use vault_tests::{Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    init_changes_no_existing_file,
    commands_work_during_server_load,
    stop_loses_no_acknowledged_write,
}

fn init_changes_no_existing_file(database: Database) {
    let vault = Vault::init(database);
    vault.organization("Acme");
    // Without the embedded database file, whose pages SQLite rearranges at every open.
    let state = || Snapshot::of(&vault.data_dir()).without(&["orgvault.db", "orgvault.db-shm", "orgvault.db-wal"]);
    let before = state();
    vault.run(&["init"]).refused();
    vault.run(&["init", "--json"]).refused();
    assert_eq!(state(), before);
    assert_eq!(vault.json(&["org", "list"])[0]["name"], "Acme");

    // The root key of an interrupted first run is used and not replaced.
    let part = Vault::absent(database);
    fs::create_dir(part.data_dir()).unwrap();
    let key = part.data_dir().join("root.key");
    let mut random = [0; 32];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    fs::write(&key, random).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let mark = match database {
        Database::Sqlite => "orgvault.db.first-run",
        Database::Postgres => "root.key.first-run",
    };
    fs::write(part.data_dir().join(mark), "").unwrap();
    part.run(&["init"]).done();
    assert_eq!(fs::read(&key).unwrap(), random);
    assert!(!part.data_dir().join(mark).exists());
    // No key is created for rows of another vault.
    let key = vault.data_dir().join("root.key");
    fs::rename(&key, vault.scratch("root.key")).unwrap();
    vault.run(&["init"]).refused();
    assert!(!key.exists());
}

/// Saves from four threads until stopped, and counts. A thread ends when its server disconnects.
fn load<T>(
    session: &Session,
    client: &(impl Fn() -> Client + Sync),
    during: impl FnOnce(&AtomicUsize) -> T,
) -> (T, Vec<String>) {
    let (stop, saved) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let savers: Vec<_> = (0..4)
            .map(|number| {
                let (stop, saved, session) = (&stop, &saved, session.on(&client()));
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let call = session.call("PATCH", "/v1/organization-vault").json(&small("load", number));
                        match call.try_send() {
                            Ok(answer) if answer.status == 201 => {
                                ids.push(answer.json()["id"].as_str().unwrap().to_owned())
                            }
                            Ok(answer) if answer.status == 503 => {}
                            Ok(answer) => panic!("{}: {}", answer.status, answer.text()),
                            Err(_) => break,
                        }
                        saved.fetch_add(1, Ordering::Relaxed);
                    }
                    ids
                })
            })
            .collect();
        // Also stop the savers after a panic, because the scope waits for them.
        let result = catch_unwind(AssertUnwindSafe(|| during(&saved)));
        stop.store(true, Ordering::Relaxed);
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        (result, savers.into_iter().flat_map(|saver| saver.join().unwrap()).collect())
    })
}

fn commands_work_during_server_load(database: Database) {
    let vault = Vault::start(database);
    let session = vault.admin_session();
    let commands: [&[&str]; 5] = [
        &["account", "create", "--org", "Acme", "--email", "new@example.com", "--role", "viewer"],
        &["org", "list"],
        &["org", "create", "Globex"],
        &["account", "set-role", "--role", "viewer", "--email", "new@example.com"],
        &["account", "list"],
    ];
    let ((), ids) = load(&session, &|| vault.client(), |saved| {
        for command in commands {
            let before = saved.load(Ordering::Relaxed);
            vault.run(command).done(); // which would fail if it had waited too long for a lock
            while saved.load(Ordering::Relaxed) == before {
                thread::sleep(Duration::from_millis(5)); // leaves the processor to the server
            }
        }
    });
    assert!(ids.len() > commands.len());
}

fn stop_loses_no_acknowledged_write(database: Database) {
    let mut vault = Vault::start(database);
    let account = vault.admin();
    for _ in 0..3 {
        let session = account.log_in(&vault.client());
        let server = vault.take_server();
        let (status, ids) = load(&session, &|| server.client(), |saved| {
            while saved.load(Ordering::Relaxed) < 50 {
                thread::yield_now();
            }
            server.ask_to_stop();
        });
        let () = status;
        assert_eq!(server.stop(), Some(0), "{}", vault.log());
        vault.serve();
        let listed = session.on(&vault.client()).ids();
        assert!(ids.iter().all(|id| listed.contains(id)), "{} of {} are left", listed.len(), ids.len());
        for id in &listed {
            session.on(&vault.client()).delete(id).expect(204);
        }
    }
}

/// Work in progress in a process must not crash its exit.
#[test]
fn every_stop_is_orderly() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme");
    let weak = vault.password_file("short");
    let create = ["account", "create", "--org", "Acme", "--email", "weak@example.com", "--role", "viewer"];
    let refused = [&create[..], &["--password-file", weak.to_str().unwrap()]].concat();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..40 {
                    vault.run(&refused).refused();
                    vault.run(&["account", "list"]).done();
                }
            });
        }
    });
}

#[test]
fn one_server_serves_an_embedded_file() {
    let vault = Vault::start(Database::Sqlite);
    let output = Server::fail(vault.serve_command()).refused().stderr;
    assert!(output.contains(&vault.server().id().to_string()), "names the process: {output}");
    vault.run(&["migrate"]).refused();
    Server::fail(vault.command(&["quickstart"])).refused();
    assert_eq!(vault.client().get("/readyz").send().status, 200);
    // The lock is released when its holder exits, in any way.
    let mut vault = vault;
    vault.kill_and_restart();
    vault.restart();
}
