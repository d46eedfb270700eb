//! `orgvault export` and `apply`: configuration as code.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use vault_tests::binary::Run;
use vault_tests::issuer::{SigningKey, audience, now};
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Database, Desk, Session, Vault, on_both_databases};

on_both_databases! {
    killed_or_concurrent_applies_converge,
}

/// An admin who is logged in to a vault, with a directory of documents.
struct Stage {
    desk: Desk,
    vault: Vault,
    listener: ActivationListener,
    session: Session,
    email: String,
}

const DOCUMENT: &str = r#"
set: etl
integrations:
  - name: nightly
    namespaces: ["imports/*"]
    trusts:
      - issuer: cluster
        claims: {"/sub": "system:serviceaccount:etl:nightly"}
  - name: hourly
    namespaces: [exports/hourly, imports/nightly]
    expires_at: "2099-01-01T00:00:00Z"
    disabled: true
credentials:
  - namespace: imports/nightly
    name: source
    type: s3
    labels: {team: data}
    description: "it's the \"source\""
    data: &DATA
"#;

/// The data of a credential in a document, with its secret in a file.
const DATA: &str =
    "{access_key_id: AKIAQ3EGRIYLK0000001, secret_access_key: {file: secrets/one}, bucket: nightly, region: eu-west-1}";

impl Stage {
    fn open(database: Database) -> Self {
        let (vault, listener) = ActivationListener::open(database);
        let admin = vault.admin();
        let (session, desk) = (admin.log_in(&vault.client()), Desk::with_login(&vault, &admin));
        fs::create_dir(desk.home().join("secrets")).unwrap();
        Self { session, email: admin.email, vault, listener, desk }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.desk.home().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        self.desk.file(name, text);
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let run = self.desk.run(arguments);
        assert!(!run.stdout.contains("7sGh") && !run.stderr.contains("7sGh"), "a secret: {run:?}");
        run
    }

    /// Returns the changes that a plan of `etl.yaml` shows.
    fn plan(&self, more: &[&str]) -> Vec<String> {
        let run = self.run(&[&["apply", "--dry-run", "-f", "etl.yaml", "--json"], more].concat());
        let changes: Vec<String> = serde_json::from_value(run.json()["changes"].clone()).unwrap();
        assert_eq!(run.status, Some(if changes.is_empty() { 0 } else { 3 }), "{run:?}");
        changes
    }

    fn apply(&self, more: &[&str]) -> Run {
        self.run(&[&["apply", "-f", "etl.yaml", "--yes"], more].concat())
    }

    /// Adds the issuer `cluster` with a key set from a file.
    fn issuer(&self) -> SigningKey {
        let key = SigningKey::new("1");
        let keys = self.vault.scratch("keys.json");
        fs::write(&keys, json!({"keys": [key.public()]}).to_string()).unwrap();
        let add = [
            "issuer",
            "add",
            "cluster",
            "--issuer",
            "https://kubernetes.default.svc",
            "--jwks-file",
            keys.to_str().unwrap(),
        ];
        self.vault.run(&add).done();
        key
    }
}

/// A webhook is identified by its host. Its URL is read when it is new, and its signing secret is stored.
#[test]
fn receivers_are_described() {
    let desk = Stage::open(Database::Sqlite);
    let document = |events: &str, disabled: &str| {
        format!(
            "set: etl\nreceivers:\n  - webhook: \"https://hooks.example/…\"\n    url: {{file: receivers/hooks.example}}\n    events: {events}\n{disabled}"
        )
    };
    desk.write("etl.yaml", &document("[credential.failing, credential.expiring]", "    disabled: true\n"));
    assert!(
        desk.run(&["apply", "--dry-run", "-f", "etl.yaml"])
            .refused()
            .stderr
            .contains("etl.yaml:4: url: cannot read receivers/hooks.example")
    );
    fs::create_dir(desk.path("receivers")).unwrap();
    desk.write("receivers/hooks.example", "https://other.example/7sGh");
    assert!(
        desk.run(&["apply", "--dry-run", "-f", "etl.yaml"])
            .refused()
            .stderr
            .contains("url: is of https://other.example/…")
    );
    desk.write("receivers/hooks.example", "https://hooks.example/7sGh");
    assert_eq!(desk.plan(&[]), ["+ receiver https://hooks.example/…: credential.failing, credential.expiring"]);
    let refused = desk.apply(&[]);
    assert!(refused.status == Some(2) && refused.stderr.contains("--secrets-out"), "{refused:?}");
    let file = desk.path("made");
    desk.apply(&["--secrets-out", file.to_str().unwrap()]).done();
    assert!(fs::read_to_string(file).unwrap().contains("\"secret\":\"whsec_"));
    assert!(desk.plan(&[]).is_empty());
    let exported = desk.run(&["export"]).done().stdout;
    let expected = "receivers:\n  - webhook: \"https://hooks.example/…\"\n    disabled: true\n    \
                    events: [\"credential.expiring\",\"credential.failing\"]\n    url: {\"file\":\"receivers/hooks.example\"}\n";
    assert!(exported.contains(expected), "{exported}");
    // The URL is no longer needed.
    fs::remove_file(desk.path("receivers/hooks.example")).unwrap();
    desk.write("etl.yaml", &document("[]", ""));
    assert_eq!(desk.plan(&[]), ["~ receiver https://hooks.example/…: gets all events, becomes active"]);
    desk.apply(&[]).done();
    assert!(desk.plan(&[]).is_empty());
}

fn document() -> String {
    DOCUMENT.replace("&DATA", DATA)
}

#[test]
fn export_applied_elsewhere_is_identical() {
    let desk = Stage::open(Database::Sqlite);
    desk.write("etl.yaml", &document());
    desk.write("secrets/one", "7sGh-source\n");

    // A missing issuer is reported before anything is changed.
    let refused = desk.apply(&[]).refused();
    assert!(
        refused.stderr.contains("etl.yaml:7: trusts/0/issuer: cluster does not exist on this server"),
        "{}",
        refused.stderr
    );
    assert_eq!(desk.session.list().len(), 0);
    let key = desk.issuer();
    assert_eq!(
        desk.plan(&[]),
        [
            "+ integration nightly: imports/*, 1 trusts",
            "+ integration hourly: exports/hourly, imports/nightly, 0 trusts",
            "+ credential imports/nightly source: s3",
        ]
    );
    desk.apply(&[]).done();
    assert!(desk.plan(&[]).is_empty());

    // A job gets the documented access without a stored token.
    let shown = desk.vault.json(&["integration", "show", "--org", "Acme", "--name", "nightly"]);
    let integration = shown["id"].as_str().unwrap();
    let claims = json!({"iss": "https://kubernetes.default.svc", "aud": audience(integration), "iat": now(), "exp": now() + 300,
        "sub": "system:serviceaccount:etl:nightly"});
    let body = json!({"namespace": "imports/nightly"});
    let answer =
        desk.listener.client().request("POST", "/v1/activations").bearer(&key.sign(&claims)).json(&body).send();
    assert_eq!(answer.expect(201).json()["credentials"][0]["data"]["secret_access_key"], "7sGh-source");

    // After manual changes, the plan shows them and `apply` reverts them.
    let id = desk.session.list()[0]["id"].as_str().unwrap().to_owned();
    desk.run(&["credential", "set", &id, "--label", "team=other", "--label", "more=x"]).done();
    desk.vault.run(&["integration", "set", "--state", "disabled", "--org", "Acme", "--name", "nightly"]).done();
    assert_eq!(
        desk.plan(&[]),
        [
            "~ integration nightly: becomes active",
            "~ credential imports/nightly source: label team=data, no label more"
        ]
    );
    desk.apply(&[]).done();
    assert!(desk.plan(&[]).is_empty());

    // New data is sent only when its number increases.
    desk.write("etl.yaml", &document().replace("bucket: nightly", "bucket: other"));
    let refused = desk.run(&["apply", "--dry-run", "-f", "etl.yaml"]).refused();
    assert!(
        refused.stderr.contains("bucket: differs from the stored value: increase data_version"),
        "{}",
        refused.stderr
    );
    let raised =
        document().replace("bucket: nightly", "bucket: other").replace("    data:", "    data_version: 2\n    data:");
    desk.write("etl.yaml", &raised);
    desk.write("secrets/one", "7sGh-second\n");
    desk.apply(&[]).done();
    assert_eq!(desk.session.show(&id).expect(200).json()["information"]["bucket"], "other");
    desk.write("etl.yaml", &document());
    assert!(
        desk.run(&["apply", "--dry-run", "-f", "etl.yaml"])
            .refused()
            .stderr
            .contains("data_version: is 1, and 2 was sent already")
    );

    // In another organization with the same data files, the export has the same bytes.
    desk.session.save(&small("unnamed", 9));
    let exported = desk.run(&["export"]).done();
    assert!(exported.stderr.contains("1 credential without the label name"), "{}", exported.stderr);
    let other = Stage::open(Database::Sqlite);
    other.issuer();
    let text = exported.stdout.split("\n# ").next().unwrap().replace(&desk.email, &other.email);
    other.write("etl.yaml", &text);
    for (field, content) in [("access_key_id", "AKIAQ3EGRIYLK0000001"), ("secret_access_key", "7sGh-second")] {
        fs::create_dir_all(other.path("data/imports/nightly/source")).unwrap();
        other.write(&format!("data/imports/nightly/source/{field}"), content);
    }
    other.apply(&[]).done();
    assert!(other.plan(&[]).is_empty());
    assert_eq!(other.run(&["export"]).done().stdout.trim_end(), text.trim_end());
}

#[test]
fn deletion_requires_request() {
    let desk = Stage::open(Database::Sqlite);
    desk.write("secrets/one", "7sGh-source");
    let credential = |n: usize| format!("  - {{namespace: imports/{n}, name: n, type: s3, data: {DATA}}}\n");
    let all = |count: usize| format!("set: etl\ncredentials:\n{}", (0..count).map(credential).collect::<String>());
    desk.write("etl.yaml", &all(13));
    desk.apply(&[]).done();
    let foreign = desk.session.save(&small("imports/0", 1));
    desk.write("etl.yaml", &all(1));
    assert!(desk.plan(&[]).is_empty(), "undescribed objects are unchanged");
    assert_eq!(desk.plan(&["--prune"]).len(), 12);
    assert_eq!(desk.session.list().len(), 14);
    desk.apply(&["--prune"]).done();
    let left: Vec<Value> = desk.session.list();
    assert_eq!(left.len(), 2);
    assert!(left.iter().any(|item| item["id"] == *foreign), "of the set alone");
    desk.write("etl.yaml", "set: etl\ncredentials: []\n");
    desk.run(&["apply", "--dry-run", "-f", "etl.yaml", "--prune"]).misused();

    // Pruning deletes integrations of the set, and no others.
    desk.vault.run(&["integration", "create", "--org", "Acme", "--name", "by-hand", "--namespace", "a"]).done();
    let integrations = "integrations:\n  - {name: one, namespaces: [a]}\n";
    desk.write("etl.yaml", &format!("set: etl\n{integrations}  - {{name: two, namespaces: [a]}}\n"));
    desk.apply(&[]).done();
    assert_eq!(desk.vault.json(&["integration", "list", "--org", "Acme"]).as_array().unwrap().len(), 3);
    desk.write("etl.yaml", &format!("set: etl\n{integrations}"));
    assert_eq!(desk.plan(&["--prune"]), ["- integration two", "- credential imports/0 n"]);
    desk.apply(&["--prune"]).done();
    let left = desk.vault.json(&["integration", "list", "--org", "Acme"]);
    let names: Vec<&str> = left.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names.contains(&"by-hand") && names.contains(&"one"), "{names:?}");
}

#[test]
fn one_time_secrets_are_written_to_a_file_or_not_created() {
    let desk = Stage::open(Database::Sqlite);
    let email = "colleague@example.com";
    let document = format!(
        "set: people\npeople:\n  - {{email: {email}, role: editor}}\nintegrations:\n  - {{name: old, namespaces: [a], token: true}}\n"
    );
    desk.write("etl.yaml", &document);
    let refused = desk.apply(&[]);
    assert!(refused.status == Some(2) && refused.stderr.contains("--secrets-out"), "{refused:?}");
    assert_eq!(desk.plan(&[]).len(), 2, "nothing was made");
    let file = desk.path("made");
    desk.apply(&["--secrets-out", file.to_str().unwrap()]).done();
    let lines: Vec<Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["token"].as_str().unwrap().starts_with("ovi_"));
    assert!(lines[1]["person"] == email && lines[1]["enrolment_code"].is_string(), "{}", lines[1]["person"]);
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
    assert!(desk.plan(&[]).is_empty());
    desk.write("etl.yaml", &document.replace("editor", "viewer"));
    assert_eq!(desk.plan(&[]), [format!("~ person {email}: role becomes viewer")]);
    // An existing file is not overwritten.
    desk.write("etl.yaml", &document.replace(email, "another@example.com"));
    desk.apply(&["--secrets-out", file.to_str().unwrap()]).refused();
}

#[test]
fn deleted_credentials_are_recreated_and_interrupted_replacements_continue() {
    let desk = Stage::open(Database::Sqlite);
    let write = |version: usize, secret: &str| {
        desk.write("secrets/one", secret);
        let credential = format!("{{namespace: a, name: n, type: s3, data_version: {version}, data: {DATA}}}");
        desk.write("etl.yaml", &format!("set: etl\ncredentials:\n  - {credential}\n"));
    };
    let only = || {
        let list = desk.session.list();
        assert_eq!(list.len(), 1);
        list[0]["id"].as_str().unwrap().to_owned()
    };
    for secret in ["7sGh-first", "7sGh-second", "7sGh-first"] {
        write(1, secret);
        desk.apply(&[]).done();
        assert!(desk.plan(&[]).is_empty());
        desk.run(&["credential", "delete", &only(), "--yes"]).done();
    }
    write(1, "7sGh-first");
    desk.apply(&[]).done();
    // The data was replaced, and the run was interrupted before it recorded the version.
    write(2, "7sGh-second");
    desk.apply(&[]).done();
    desk.run(&["credential", "set", &only(), "--label", "data-version=1"]).done();
    write(2, "7sGh-third");
    desk.apply(&[]).done();
    assert!(desk.plan(&[]).is_empty());
    let show = desk.session.show(&only()).expect(200).json();
    assert_eq!(show["labels"]["data-version"], "2");
}

#[test]
fn disabled_people_are_not_invited_and_their_invitations_are_withdrawn() {
    let desk = Stage::open(Database::Sqlite);
    let document = "set: etl\npeople:\n  - {email: ada@example.com, role: admin, disabled: true}\n";
    desk.write("etl.yaml", document);
    let plan = desk.run(&["apply", "--dry-run", "-f", "etl.yaml", "--json"]);
    assert_eq!((plan.status, &plan.json()["uninvited"]), (Some(0), &json!(["ada@example.com"])));
    assert!(plan.stderr.contains("ada@example.com is disabled and has no account"), "{plan:?}");
    desk.apply(&[]).done();
    let count = || desk.vault.json(&["account", "list", "--org", "Acme"]).as_array().unwrap().len();
    assert_eq!(count(), 1);
    desk.write("etl.yaml", &document.replace(", disabled: true", ""));
    let file = desk.path("made");
    desk.apply(&["--secrets-out", file.to_str().unwrap()]).done();
    assert_eq!(count(), 2);
    desk.write("etl.yaml", document);
    assert_eq!(desk.plan(&[]), ["- invitation of ada@example.com"]);
    desk.apply(&[]).done();
    assert_eq!(count(), 1);
    assert!(desk.plan(&[]).is_empty());
}

#[test]
fn all_document_violations_are_reported_before_changes() {
    let desk = Stage::open(Database::Sqlite);
    fs::create_dir(desk.path("set")).unwrap();
    desk.write("set/a.yaml", "set: etl\nintegrations:\n  - {name: n, namespaces: [a]}\n");
    let bad = |file: &str| {
        format!(
            "  - {{namespace: a, name: n{}, type: s3, data: {{access_key_id: A, secret_access_key: {file}, bucket: b}}}}\n",
            file.len()
        )
    };
    let references =
        ["{file: gone}", "{file: ../secret}", "{file: /etc/hostname}", "{env: ORGVAULT_TEST_UNSET}", "7sGh-plain"];
    desk.write(
        "set/b.json",
        &format!("set: etl\ncredentials:\n{}", references.iter().map(|file| bad(file)).collect::<String>()),
    );
    let refused = desk.run(&["apply", "-f", "set", "--yes"]).refused();
    assert!(refused.stderr.contains("set/b.json:7: data/secret_access_key: is a secret"), "{}", refused.stderr);
    desk.write(
        "set/b.json",
        &format!("set: etl\ncredentials:\n{}", references[..4].iter().map(|file| bad(file)).collect::<String>()),
    );
    let refused = desk.run(&["apply", "-f", "set", "--yes"]).refused();
    for expected in [
        "set/b.json:3: data/secret_access_key: cannot read set/gone",
        "set/b.json:4: data/secret_access_key: ../secret must be a path below",
        "set/b.json:5: data/secret_access_key: /etc/hostname must be a path below",
        "set/b.json:6: data/secret_access_key: the environment variable ORGVAULT_TEST_UNSET is not set",
    ] {
        assert!(refused.stderr.contains(expected), "{expected}: {}", refused.stderr);
    }
    assert_eq!(desk.vault.json(&["integration", "list", "--org", "Acme"]), json!([]), "nothing was done");
}

/// Killed after any request, or run twice concurrently: after another run, each object exists once, as described.
fn killed_or_concurrent_applies_converge(database: Database) {
    let desk = Stage::open(database);
    desk.write("secrets/one", "7sGh-source");
    let integrations: String = (0..8).map(|n| format!("  - {{name: n{n}, namespaces: [\"imports/{n}\"]}}\n")).collect();
    let credentials: String =
        (0..8).map(|n| format!("  - {{namespace: imports/{n}, name: n, type: s3, data: {DATA}}}\n")).collect();
    desk.write("etl.yaml", &format!("set: etl\nintegrations:\n{integrations}credentials:\n{credentials}"));
    let start = || {
        let mut command = desk.desk.command(&["apply", "-f", "etl.yaml", "--yes"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let created = || {
        let integrations = desk.vault.json(&["integration", "list", "--org", "Acme"]).as_array().unwrap().len();
        integrations + desk.session.list().len()
    };
    // Kill it whenever a new object exists, repeatedly.
    loop {
        let before = created();
        let mut running = start();
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
    desk.apply(&[]).done();
    assert!(desk.plan(&[]).is_empty());
    assert_eq!((created(), desk.session.list().len()), (16, 8), "each once");

    // Two concurrent runs with eight more objects.
    let more: String =
        (8..16).map(|n| format!("  - {{namespace: imports/{n}, name: n, type: s3, data: {DATA}}}\n")).collect();
    desk.write("etl.yaml", &format!("set: etl\nintegrations:\n{integrations}credentials:\n{credentials}{more}"));
    let running = [start(), start()];
    for mut one in running {
        one.wait().unwrap();
    }
    desk.apply(&[]).done();
    assert!(desk.plan(&[]).is_empty());
    assert_eq!(desk.session.list().len(), 16, "each once");
}
