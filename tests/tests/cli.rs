//! The command line.

use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use vault_tests::binary::{self, Run};
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::snapshot::Snapshot;
use vault_tests::{Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    init_changes_no_existing_file,
    every_command_prints_one_json_document,
    impossible_commands_are_refused_with_reason,
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

fn every_command_prints_one_json_document(database: Database) {
    let vault = Vault::absent(database);
    let members = |value: &Value| {
        value.as_object().unwrap_or_else(|| panic!("{value}")).keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(members(&vault.json(&["init"])), "data_dir database instance root_key_file");
    assert_eq!(vault.json(&["migrate"]), json!({"applied": []}));
    for (command, state) in [
        (&["create"][..], "active"),
        (&["set", "--state", "disabled"], "disabled"),
        (&["set", "--state", "enabled"], "active"),
    ] {
        let organization = vault.json(&[&["org"], command, &["Acme"]].concat());
        assert_eq!(members(&organization), "created_at id name state");
        assert_eq!((&organization["name"], &organization["state"]), (&json!("Acme"), &json!(state)));
    }
    let email = "a@example.com";
    let created = vault.json(&["account", "create", "--org", "Acme", "--email", email, "--role", "viewer"]);
    assert_eq!(members(&created), "email id organization password recovery_codes role totp");
    assert_eq!(members(&created["totp"]), "secret uri");
    assert_eq!(created["recovery_codes"].as_array().unwrap().len(), 10);
    let password = vault.password_file("a password that was given");
    let given =
        ["account", "create", "--org", "Acme", "--email", "b@example.com", "--role", "editor", "--password-file"];
    let given = vault.json(&[&given[..], &[password.to_str().unwrap()]].concat());
    assert_eq!(
        members(&given),
        "email id organization recovery_codes role totp",
        "a password that was given is not repeated"
    );

    let invite = ["account", "invite", "--org", "Acme", "--email", "c@example.com", "--role", "editor"];
    assert_eq!(members(&vault.json(&invite)), "enrolment_code expires_at id organization");

    let changed = "created_at email id locked organization role state";
    let invited = "created_at email id invitation_expires_at locked organization role state";
    for (command, expected) in [
        (&["set-role", "--role", "admin"][..], changed),
        (&["set", "--state", "disabled"], changed),
        (&["set", "--state", "enabled"], changed),
        (&["unlock"], changed),
        (&["re-enrol"], "enrolment_code expires_at organization"),
        (&["delete", "--yes"], invited),
    ] {
        let printed = vault.json(&[&["account"], command, &["--email", email]].concat());
        assert_eq!(members(&printed), expected, "{command:?}");
    }
    let of_invited = ["--email", "c@example.com"];
    for command in [&["set-role", "--role", "viewer"][..], &["delete", "--yes"]] {
        assert_eq!(members(&vault.json(&[&["account"], command, &of_invited].concat())), invited, "{command:?}");
    }
    let accounts = vault.json(&["account", "list"]);
    assert_eq!(accounts.as_array().unwrap().len(), 1);
    assert_eq!(members(&accounts[0]), changed);
    assert_eq!(vault.json(&["account", "list", "--org", "acme"]), accounts, "names differ by more than case");
    assert_eq!(vault.json(&["org", "delete", "--yes", "Acme"])["name"], "Acme");
    assert_eq!(vault.json(&["org", "list"]), json!([]));
}

#[test]
fn text_output_is_readable() {
    let vault = Vault::absent(Database::Sqlite);
    vault.run(&["init"]).done().prints("copy of the root key").prints(vault.data_dir().to_str().unwrap());
    vault.run(&["org", "create", "Acme"]).done();
    let created =
        vault.run(&["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin"]).done().stdout;
    let codes = created
        .split_whitespace()
        .filter(|word| word.len() == 23 && word.split('-').all(|group| group.len() == 5))
        .count();
    assert_eq!(codes, 10, "recovery codes in {created}");
    assert!(created.contains("otpauth://totp/"), "{created}");
    vault.run(&["account", "list"]).done().prints("a@example.com").prints("admin").prints("Acme");
}

fn impossible_commands_are_refused_with_reason(database: Database) {
    let vault = Vault::init(database);
    let email = vault.admin().email;
    let run = |words: &str, last: &str| vault.run(&words.split(' ').chain([last]).collect::<Vec<_>>());
    for command in ["show", "set --state enabled", "unlock", "re-enrol", "delete --yes", "set-role --role admin"] {
        let refused = run(&format!("account {command} --email"), "unknown@example.com").refused();
        if !command.starts_with("delete") && !command.starts_with("set-role") {
            refused.says("no account has this address; `orgvault account list` shows all");
        }
    }
    for organization in ["Nowhere", "", " Acme", "Acme ", "Ac\nme"] {
        run("org set --state disabled", organization).refused();
        run("account create --email x@example.com --role admin --org", organization).refused();
    }
    for organization in ["", " Acme", "Acme ", "Ac\nme", "Acme", "ACME", "acme"] {
        run("org create", organization).refused();
    }
    run("account create --org Acme --role admin --email", &email.to_uppercase()).refused();
    run("account create --org Acme --role admin --email x@example.com --password-file", "/nowhere").refused();
    for role in [" admin", "Admin", "\u{ff41}dmin", "adm\u{131}n", "[\"admin\"]", "1", "", "owner", "admin,viewer"] {
        run("account create --org Acme --email x@example.com --role", role).misused();
        run(&format!("account set-role --email {email} --role"), role).misused();
    }
    // A command with a confirmation does not continue without an answer.
    run("org delete", "Acme").misused();
    run("account delete --email", &email).misused();
    assert_eq!(vault.json(&["account", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn help_is_complete() {
    let run = |arguments: &[&str]| Run::of(binary::command().args(arguments)).done().stdout;
    // All commands in the help, recursively.
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = Vec::new();
    while let Some(path) = waiting.pop() {
        let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = run(&arguments);
        assert!(help.contains("Usage:") && help.len() > 200, "{path:?}: {help}");
        // The program's own help has several groups of commands.
        let listed = help.lines().skip_while(|line| *line != "Commands:" && !path.is_empty());
        let listed = listed.take_while(|line| !line.starts_with("Options:"));
        let names = listed
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next());
        for name in names.filter(|name| *name != "help") {
            waiting.push([&path[..], &[name.to_owned()]].concat());
        }
        seen.push(path.join(" "));
    }
    let expected = "quickstart,init,serve,migrate,org create,org delete,account create,account invite,account re-enrol,completions,\
        login,logout,profiles,credential replace,credential destroy-version";
    for expected in expected.split(',') {
        assert!(seen.iter().any(|path| path == expected), "{expected} is not among {seen:?}");
    }
    assert_eq!(run(&["settings"]), run(&["help", "settings"]));
    assert!(run(&["--version"]).starts_with("orgvault "));
}

/// Shell completion uses the same definitions as the help.
#[test]
fn completions_match_definitions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Run::of(binary::command().args(["completions", shell])).done().stdout;
        assert!(script.contains("ORGVAULT_COMPLETE") && script.contains("orgvault"), "{shell}: {script}");
    }
    // A real shell with the real script.
    let binary = binary::path();
    let complete = |words: &str| {
        let script = format!(
            "source <(orgvault completions bash) && COMP_WORDS=({words}) && COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) \
             && _clap_complete_orgvault orgvault \"${{COMP_WORDS[COMP_CWORD]}}\" && printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = binary::isolated(Command::new("bash"));
        let path =
            std::env::join_paths([binary.parent().unwrap().to_owned(), "/usr/bin".into(), "/bin".into()]).unwrap();
        let output = Run::of(bash.args(["--norc", "-c", &script]).env("PATH", path)).done().stdout;
        output.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert!(complete("orgvault account re-").contains(&"re-enrol".to_owned()));
    assert!(complete("orgvault serve --activation-ra").contains(&"--activation-rate".to_owned()));
    let offered = complete("orgvault m");
    assert!(offered.contains(&"migrate".to_owned()) && !offered.contains(&"settings".to_owned()), "{offered:?}");
}

#[test]
fn settings_that_would_be_ignored_are_refused() {
    let vault = Vault::init(Database::Sqlite);
    for command in [
        &["migrate", "--activation-rate", "3"][..],
        &["org", "list", "--listen", "127.0.0.1:1"],
        &["quickstart", "--role", "api"],
        &["account", "list", "--public-url", "https://vault.example.com"],
    ] {
        let output = vault.run(command).misused().stderr;
        assert!(output.contains(command[command.len() - 2]), "{command:?}: {output}");
    }
    // These commands open no vault.
    for command in [&["completions", "bash"][..], &["exec", "--namespace", "a", "--token-file", "t", "--", "true"]] {
        let mut words = vault.command(command);
        let output = Run::of(words.env("ORGVAULT_ACTIVATION_URL", "unix:/nowhere")).misused().stderr;
        assert!(output.contains("--data-dir") && output.contains(command[0]), "{command:?}: {output}");
    }
}

#[test]
fn pattern_that_the_shell_has_replaced_is_refused() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme");
    let create = |name: &str, namespaces: &[&str]| {
        let words = ["integration", "create", "--org", "Acme", "--name", name];
        let mut command = vault.command(&[&words[..], namespaces].concat());
        command.current_dir(vault.scratch("."));
        Run::of(&mut command)
    };
    fs::create_dir(vault.scratch("imports")).unwrap();
    for file in ["imports/a", "imports/b"] {
        fs::write(vault.scratch(file), "").unwrap();
    }
    create("x", &["--namespace", "imports/a", "imports/b"]).misused().says("--namespace 'imports/*'");
    create("one", &["--namespace", "imports/a", "--namespace", "imports/b"]).done();
    create("two", &["--namespace", "imports/*", "exports/daily"]).done();
    let flawed = create("x", &["--namespace", "ok", "--namespace", "imports/*x", "--expires", "1999-01-01"]);
    let output = flawed.refused().stderr;
    assert!(output.contains("--namespace imports/*x may ") && output.contains("--expires must "), "{output}");
    assert!(output.contains("cannot create integration x in Acme"), "{output}");
}

#[test]
fn tokens_end_after_durations() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme");
    let named = ["--org", "Acme", "--name", "x"];
    let create = ["integration", "create", "--namespace", "a", "--expires", "2099-12-31"];
    assert_eq!(vault.json(&[&create[..], &named].concat())["expires_at"], "2099-12-31T00:00:00Z");
    let rotate = |overlap: &str| vault.run(&[&["integration", "rotate", "--overlap", overlap][..], &named].concat());
    let previous = || vault.json(&["integration", "list"])[0]["previous_token_until"].clone();
    for (overlap, valid) in [("7d", true), ("0", false), ("3600", true), ("0s", false)] {
        rotate(overlap).done();
        assert_eq!(previous().is_string(), valid, "{overlap}");
    }
    for overlap in ["8d", "soon", "1500ms"] {
        rotate(overlap).misused().says("--overlap: must be a duration from 0s to 7days");
    }
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
