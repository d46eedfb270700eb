//! Commands of admins run alike on the database and, with a login, at a server on another host.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use vault_tests::binary::{self, Run};
use vault_tests::issuer::SigningKey;
use vault_tests::samples::small;
use vault_tests::{Account, Database, Desk, Vault};

/// Where a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Database,
    Server,
}

/// A vault with a server, an admin and an editor. Its commands run on the database, or in a home directory without
/// settings with the login of the admin.
struct Site {
    place: Place,
    vault: Vault,
    desk: Desk,
    admin: Account,
}

impl Site {
    fn new(place: Place, database: Database) -> Self {
        let vault = Vault::start(database);
        let desk = Desk::of(&vault, "home");
        let (admin, _editor) = (vault.admin(), vault.account("Acme", "editor"));
        let (key, keys) = (SigningKey::new("1"), vault.scratch("keys.json"));
        fs::write(&keys, json!({"keys": [key.public()]}).to_string()).unwrap();
        let issuer = ["issuer", "add", "ci", "--issuer", "https://ci.example", "--jwks-file", keys.to_str().unwrap()];
        vault.run(&issuer).done();
        admin.log_in(&vault.client()).save(&small("imports/a", 1));
        let site = Self { place, vault, desk, admin };
        site.log_in("work", &site.admin);
        site
    }

    fn log_in(&self, profile: &str, account: &Account) {
        self.desk.log_in(&self.vault, account, &["--profile", profile]).done();
    }

    /// Returns the command at its place. `--org` is replaced by the flags that select the organization.
    fn placed(&self, arguments: &[&str]) -> std::process::Command {
        let (org, flags): (&[&str], &[&str]) = match self.place {
            Place::Database => (&["--org", "Acme"], &[]),
            Place::Server => (&[], &["--profile", "work"]),
        };
        let given = arguments.iter().flat_map(|word| if *word == "--org" { org.to_vec() } else { vec![*word] });
        let arguments: Vec<&str> = given.chain(flags.iter().copied()).collect();
        match self.place {
            Place::Database => self.desk.at_home(self.vault.command(&[]), &arguments),
            Place::Server => self.desk.at_home(binary::command(), &arguments),
        }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.placed(arguments))
    }
}

/// Replaces words that may differ between two vaults, such as IDs, times, secrets and addresses. Removes the spaces of
/// columns, the flags of the place, and events, of which the instance has others than an organization.
fn alike(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("events "));
    let mut words = lines.flat_map(str::split_whitespace);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--profile" => drop(words.next()),
            word if word.starts_with("--data-dir=") || word.starts_with("--database-") => {}
            word if word.len() > 16 || word.contains(|letter: char| letter.is_numeric() || letter == '/') => {
                kept.push("#")
            }
            word => kept.push(word),
        }
    }
    kept.join(" ")
}

fn alike_json(value: &Value) -> Value {
    match value {
        Value::String(text) => alike(text).into(),
        Value::Array(items) => items.iter().map(alike_json).collect(),
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != "events");
            Value::Object(members.map(|(name, value)| (name.clone(), alike_json(value))).collect())
        }
        other => other.clone(),
    }
}

/// Placeholders in the table, for IDs that earlier commands printed.
const RECEIVER: &str = "RECEIVER";
const TRUST: &str = "TRUST";

/// One case of each command, in order, and one of each kind of error. `--org` stands for the flags that select the
/// organization.
const TABLE: &[&[&str]] = &[
    &["account", "invite", "--org", "--email", "New@Example.com", "--role", "viewer"],
    &["account", "list", "--org"],
    &["account", "show", "--email", "new@example.com"],
    &["account", "set-role", "--email", "new@example.com", "--role", "editor"],
    &["account", "set", "--state", "disabled", "--email", "new@example.com"],
    &["account", "delete", "--email", "new@example.com", "--yes"],
    &["account", "show", "--email", "new@example.com"],
    &["account", "show", "--email", "not an address"],
    &["account", "set", "--state", "disabled", "--email", "editor.1@example.com"],
    &["account", "re-enrol", "--email", "editor.1@example.com"],
    &["account", "unlock", "--email", "editor.1@example.com"],
    &["integration", "create", "--org", "--name", "Nightly", "--namespace", "imports/*", "--expires", "2091-01-01"],
    &["integration", "create", "--org", "--name", "nightly", "--namespace", "imports/*"],
    &["integration", "create", "--org", "--name", "x", "--namespace", "in valid", "--expires", "2001-01-01"],
    &["integration", "create", "--org", "--name", "file", "--namespace", "a", "--output", "file.token"],
    &["integration", "create", "--org", "--name", "jobs", "--namespace", "a", "--no-token", "--trust", JOB],
    &["integration", "trust", "--org", "--name", "nightly", "--trust", JOB],
    &["integration", "trust", "--org", "--name", "nightly", "--trust", r#"{"issuer": "ci", "claims": {}, "typo": 1}"#],
    &["integration", "show", "--org", "--name", "NIGHTLY"],
    &["integration", "distrust", "--org", "--name", "nightly", "--trust", TRUST],
    &["integration", "rotate", "--org", "--name", "nightly"],
    &["integration", "set", "--state", "disabled", "--org", "--name", "nightly"],
    &["integration", "list", "--org"],
    &["integration", "delete", "--org", "--name", "nightly", "--yes"],
    &["integration", "delete", "--org", "--name", "nightly", "--yes"],
    &["namespace", "freeze", "imports/a", "--org"],
    &["namespace", "list"],
    &["namespace", "thaw", "imports/a", "--org"],
    &["receiver", "add", "--url", "https://hooks.example.com/secret-path"],
    &["receiver", "list"],
    &["receiver", "change", RECEIVER, "--state", "disabled"],
    &["receiver", "rotate-secret", RECEIVER],
    &["receiver", "test", RECEIVER],
    &["receiver", "remove", RECEIVER],
    &["receiver", "deliveries", RECEIVER],
    &["audit", "list", "--org", "--action", "receiver.removed", "--subject", "absent@example.com"],
];

const JOB: &str = r#"{"issuer": "ci", "claims": {"/sub": "job:1", "/n": 7}, "max_lifetime": 900}"#;

#[test]
fn commands_on_the_database_and_at_a_server_print_the_same() {
    let sites = [Place::Database, Place::Server].map(|place| Site::new(place, Database::Sqlite));
    let mut ids = [BTreeMap::<&str, String>::new(), BTreeMap::new()];
    let mut wrong = String::new();
    for (number, step) in TABLE.iter().enumerate() {
        // The output alternates between text and JSON. Errors are text.
        let id = [(["receiver", "add"], RECEIVER), (["integration", "trust"], TRUST)];
        let id = id.into_iter().find(|(command, _)| step.starts_with(command)).map(|(_, placeholder)| placeholder);
        let json: &[&str] = if number % 2 == 0 || id.is_some() { &["--json"] } else { &[] };
        let mut run = |index: usize| {
            let words = step.iter().chain(json);
            let words: Vec<&str> = words.map(|word| ids[index].get(word).map_or(*word, String::as_str)).collect();
            let run = sites[index].run(&words);
            let printed = serde_json::from_str::<Value>(&run.stdout).ok();
            if let (Some(placeholder), Some(created)) = (id, &printed) {
                ids[index].insert(placeholder, created["id"].as_str().unwrap().to_owned());
            }
            let output = match printed {
                Some(printed) => alike_json(&printed).to_string(),
                None => alike(&run.stdout),
            };
            (run.status, output, message(&run))
        };
        let shown = [run(0), run(1)];
        if shown[0] != shown[1] {
            wrong +=
                &format!("{step:?}\n  on the Database::Sqlite: {:?}\n  at the server:   {:?}\n", shown[0], shown[1]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    audit_entries_have_the_same_shape(&sites);
}

/// Returns the message on standard error, without the note about the profile.
fn message(run: &Run) -> String {
    let lines = run.stderr.lines().filter(|line| !line.contains("can be reached only from this host"));
    alike(&lines.collect::<Vec<_>>().join("\n").replace(" (with profile work)", ""))
}

/// Entries have the same fields, without the checkpoint, which counts those of other organizations. Their actor differs.
fn audit_entries_have_the_same_shape(sites: &[Site; 2]) {
    let entries = |site: &Site| {
        let words =
            ["audit", "list", "--json-lines", "--org", "--action", "account.invited", "--action", "namespace.frozen"];
        // An entry appears in the lists of an organization within about a second.
        loop {
            let entries = site.run(&words).done().stdout;
            if entries.lines().count() == 2 {
                return entries;
            }
        }
    };
    let [first, second] = sites.each_ref().map(|site| {
        let of = |line: &str| {
            let mut entry: Value = serde_json::from_str(line).unwrap();
            assert_eq!(entry["organization"].as_str().unwrap().len(), 36, "{entry}");
            let fields = entry.as_object_mut().unwrap();
            assert_eq!(fields.remove("checkpoint").is_some(), site.place == Place::Database, "{line}");
            let by_actor = |name: &&String| !["account", "session", "network"].contains(&name.as_str());
            fields.keys().filter(by_actor).cloned().collect::<Vec<_>>()
        };
        entries(site).lines().map(of).collect::<Vec<_>>()
    });
    assert_eq!(first, second);
    let by_admin =
        ["audit", "list", "--json-lines", "--org", "--actor", &sites[1].admin.email, "--action", "namespace.frozen"];
    let [by_operator, by_login] = sites.each_ref().map(|site| site.run(&by_admin).done().stdout.lines().count());
    assert_eq!((by_operator, by_login), (0, 1));
}

#[test]
fn commands_without_an_http_operation_run_on_the_server_only() {
    let site = Site::new(Place::Server, Database::Sqlite);
    for command in [
        &["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin"][..],
        &["audit", "verify"],
        &["org", "create", "Other"],
        &["org", "list"],
        &["issuer", "list"],
        &["issuer", "remove", "ci"],
        &["key", "status"],
        &["key", "rotate", "--all"],
        &["doctor"],
        &["backup", "x"],
        &["serve"],
    ] {
        let refused = site.desk.run(&[command, &["--profile", "work"]].concat()).misused().stderr;
        let name = command.iter().take(2).take_while(|word| !word.starts_with('-') && **word != "x");
        let name = name.copied().collect::<Vec<_>>().join(" ");
        assert!(refused.contains(&format!("`orgvault {name}` runs on the server only")), "{name}: {refused}");
    }
    // A command that uses no vault has no such flag either.
    site.desk.run(&["profiles", "--profile", "work"]).misused().omits("on the server");
}

#[test]
fn login_is_used_only_for_its_own_organization_and_without_settings() {
    let site = Site::new(Place::Server, Database::Sqlite);
    let with = |arguments: &[&str]| site.desk.run(&[arguments, &["--profile", "work"]].concat());
    with(&["integration", "list", "--org", "acme"]).done();
    for command in [
        &["integration", "list", "--org", "Other"][..],
        &["account", "list", "--org", "Other"],
        &["account", "delete", "--email", &site.admin.email, "--org", "Other", "--yes"],
        &["audit", "list", "--org", "Other"],
        &["namespace", "freeze", "imports/a", "--org", "Other"],
    ] {
        with(command).refused().says("belongs to organization Acme");
    }
    for (flag, value) in [("--data-dir", "x"), ("--public-url", "https://vault.example.com")] {
        let invite = ["account", "invite", "--email", "a@example.com", "--role", "viewer", flag, value];
        with(&invite).misused().says(flag).says("--profile");
    }
    site.desk.run(&["receiver", "list", "--profile", "other"]).refused().says("orgvault login --profile other");
    site.desk.run(&["receiver", "list"]).refused().says("no vault found").says("pass --profile");
    // Before and after the name of the command.
    site.desk.run(&["receiver", "--profile", "work", "list"]).done();
    // On the database, the organization is required.
    site.vault.run(&["namespace", "freeze", "imports/a"]).misused().says("--org is required");
}

#[test]
fn roles_and_expired_logins_are_refused_with_the_next_step() {
    let site = Site::new(Place::Server, Database::Sqlite);
    let editor = site.vault.account("Acme", "editor");
    site.log_in("editor", &editor);
    let refused = site.desk.run(&["account", "list", "--profile", "editor"]).refused().stderr;
    assert!(refused.contains("Ask an admin") && refused.contains("profile editor"), "{refused}");
    site.vault.run(&["account", "set", "--state", "disabled", "--email", &site.admin.email]).done();
    let refused = site.desk.run(&["account", "list", "--profile", "work"]).refused().stderr;
    assert!(refused.contains("expired or was revoked") && refused.contains("login --profile work"), "{refused}");
}
