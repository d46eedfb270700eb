//! `orgvault apply` and `import` that are interrupted: another run completes what they began.

use std::process::{Child, Stdio};
use vault_tests::binary::Run;
use vault_tests::{Database, Desk, Session, Vault, on_both_databases};

on_both_databases! {
    killed_or_concurrent_applies_converge,
}

/// An admin who is logged in to a vault, with a directory of documents.
struct Stage {
    desk: Desk,
    vault: Vault,
    session: Session,
}

const APPLY: [&str; 4] = ["apply", "-f", "etl.yaml", "--yes"];

impl Stage {
    fn open(database: Database) -> Self {
        let vault = Vault::start(database);
        let admin = vault.admin();
        Self { session: admin.log_in(&vault.client()), desk: Desk::with_login(&vault, &admin), vault }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.desk.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn saved(&self) -> usize {
        self.session.list().len()
    }

    /// Asserts that `etl.yaml` describes what exists.
    fn nothing_to_change(&self) {
        self.desk.run(&APPLY).done();
        self.desk.run(&["apply", "--dry-run", "-f", "etl.yaml"]).done().prints("Nothing to change.");
    }
}

/// Killed after any request, or run twice concurrently: after another run, each object exists once, as described.
fn killed_or_concurrent_applies_converge(database: Database) {
    let stage = Stage::open(database);
    stage.desk.file("secret", "7sGh-source");
    let integrations: String = (0..8).map(|n| format!("  - {{name: n{n}, namespaces: [\"imports/{n}\"]}}\n")).collect();
    let credential = |n: usize| {
        let data = "{access_key_id: AKIAQ3EGRIYLK0000001, secret_access_key: {file: secret}, bucket: nightly}";
        format!("  - {{namespace: imports/{n}, name: n, type: s3, data: {data}}}\n")
    };
    let write = |count| {
        let credentials: String = (0..count).map(credential).collect();
        let text = format!("set: etl\nintegrations:\n{integrations}credentials:\n{credentials}");
        stage.desk.file("etl.yaml", &text);
    };
    write(8);
    let created = || {
        let integrations = stage.vault.json(&["integration", "list", "--org", "Acme"]);
        integrations.as_array().unwrap().len() + stage.saved()
    };
    // Kill it whenever a new object exists, repeatedly.
    loop {
        let before = created();
        let mut running = stage.start(&APPLY);
        let ended = loop {
            if running.try_wait().unwrap().is_some() {
                break true;
            }
            if created() > before {
                running.kill().unwrap();
                running.wait().unwrap();
                break false;
            }
        };
        if ended {
            break;
        }
    }
    stage.nothing_to_change();
    assert_eq!((created(), stage.saved()), (16, 8), "each once");

    // Two concurrent runs with eight more objects.
    write(16);
    for mut one in [(); 2].map(|()| stage.start(&APPLY)) {
        one.wait().unwrap();
    }
    stage.nothing_to_change();
    assert_eq!(stage.saved(), 16, "each once");
}

/// The server disconnects during an import. Saved credentials are complete, and a second run continues.
#[test]
fn interrupted_import_continues() {
    let mut stage = Stage::open(Database::Sqlite);
    let section = |n| {
        let keys = "aws_access_key_id = AKIAIMPORTED000000";
        format!("[e{n}]\n{keys}{n:02}\naws_secret_access_key = SECRET{n}\nbucket = b\n")
    };
    let file = stage.desk.file("credentials", &(0..40).map(section).collect::<String>());
    let import = ["import", "--from", "aws", &file, "--namespace", "imports/{name}", "--yes"];
    let mut running = stage.start(&import);
    while stage.saved() == 0 && running.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let before = stage.saved();
    assert!(before > 0);
    let omits_secrets = |run: &Run| assert!(!format!("{run:?}").contains("SECRET"), "{run:?}");
    omits_secrets(&stage.desk.run(&import).done());
    assert_eq!(stage.saved(), 40, "{before} before");
    stage.vault.stop();
    let stopped = stage.desk.run(&import);
    omits_secrets(&stopped);
    assert_eq!(stopped.status, Some(1), "{stopped:?}");
}
