//! Restoring a vault. It works as before, also on another host. Revoked state does not come back, and a rejected or
//! killed restore leaves the previous state.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vault_testkit::postgres::Cluster;
use vault_tests::binary::Run;
use vault_tests::database::new_postgres;
use vault_tests::passcode::current_step;
use vault_tests::process::Server;
use vault_tests::samples::{every_type, small};
use vault_tests::sql::Sql;
use vault_tests::{Account, ActivationListener, Client, Database, Integration, Session, Vault};

/// Returns the part of an activation that does not change between activations.
fn activated(integration: &Integration, client: &Client, namespace: &str) -> Value {
    integration.activate(client, namespace).expect(201).json()["credentials"].clone()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Creates an empty data directory with a copy of a vault's root key, as on another host.
fn elsewhere(vault: &Vault, name: &str) -> PathBuf {
    let directory = vault.scratch(name);
    fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    fs::copy(vault.data_dir().join("root.key"), directory.join("root.key")).unwrap();
    directory
}

/// Creates a backup and returns its path.
fn backed_up(vault: &Vault, name: &str) -> PathBuf {
    let file = vault.scratch(name);
    let created = vault.json(&["backup", text(&file)]);
    assert_eq!(created["backup"], text(&file));
    file
}

/// Logs in after a new enrolment, because recovery codes are invalid after a restore.
fn log_in_again(vault: &Vault, account: &Account, client: &Client) -> Session {
    account.enrolled_again(&vault.json(&["account", "re-enrol", "--email", &account.email]), client).log_in(client)
}

/// Waits for the next step, because codes up to that of the restore are invalid. Returns its code.
fn next_code(account: &Account) -> String {
    let step = current_step();
    while current_step() == step {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    account.authenticator.code(step + 1)
}

#[test]
fn backup_works_on_another_host() {
    let (mut vault, listener) = ActivationListener::open(Database::Sqlite);
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let mut saved = Vec::new();
    for (number, sample) in every_type().into_iter().enumerate() {
        let mut request = sample.request.clone();
        request["namespace"] = format!("imports/{number}").into();
        saved.push(session.save(&request));
    }
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    let before: Vec<Value> =
        (0..4).map(|n| activated(&integration, &listener.client(), &format!("imports/{n}"))).collect();
    let shown: Vec<Value> = saved.iter().map(|id| session.show(id).expect(200).json()).collect();

    // While the server runs.
    let backup = backed_up(&vault, "one.backup");
    assert!(session.is_live());
    vault.stop();
    let directory = elsewhere(&vault, "elsewhere");
    // Before the restore, so that the step of a later login is unused.
    let step = current_step();
    let restored = vault.json(&["restore", text(&backup), "--data-dir", text(&directory)]);
    assert_eq!(restored["ended"]["sessions"], 1, "{restored}");
    assert_eq!(restored["ended"]["activations"], 4, "{restored}");
    let key = |directory: &Path| fs::read(directory.join("orgvault.db.key")).unwrap();
    assert_ne!(key(&directory)[6..22], key(&vault.data_dir())[6..22], "the database has a key of its own");

    let listen = format!("--activation-listen={}", listener.address);
    let serve = vault.command(&["serve", "--data-dir", text(&directory), &listen]);
    let server = Server::start(serve, &vault.scratch("output"), &vault.scratch("log"));
    let client = server.client();
    assert!(!session.on(&client).is_live(), "an older token is dead");
    client.log_in(&admin.login(&admin.recovery_code())).problem("invalid-login");
    for spent in [step - 1, step] {
        client.log_in(&admin.login(&admin.authenticator.code(spent))).problem("invalid-login");
    }
    let session = Session::new(&client, &client.log_in(&admin.login(&next_code(&admin))).expect(200));
    for (id, shown) in saved.iter().zip(&shown) {
        let mut now = session.show(id).expect(200).json();
        now["last_activated_at"] = shown["last_activated_at"].clone();
        assert_eq!(now, *shown);
    }
    assert_eq!(integration.live(&listener.client()), Vec::<Value>::new(), "activations ended");
    let after: Vec<Value> =
        (0..4).map(|n| activated(&integration, &listener.client(), &format!("imports/{n}"))).collect();
    assert_eq!(after, before);
    session.save(&small("imports/new", 2));
    let metrics = server.admin_client().get("/metrics").send().expect(200).text();
    assert!(metrics.contains("orgvault_integrity_failures_total 0"), "{metrics}");
}

#[test]
fn rights_revoked_since_backup_stay_revoked() {
    let (mut vault, listener) = ActivationListener::open(Database::Sqlite);
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let kept = session.save(&small("kept", 1));
    let replaced = session.save(&small("replaced", 2));
    let deleted = session.save(&small("deleted", 3));
    session.save(&small("frozen", 4));
    let [disabled, gone, demoted, changed] =
        ["editor", "viewer", "admin", "editor"].map(|role| vault.account("Acme", role));
    let closed = vault.account("Closed", "admin");
    let erased = vault.account("Erased", "admin");
    let withdrawn = session.invite("withdrawn@example.com", "viewer").expect(201).json();
    let of = |name: &str| Integration::make(&vault, name, &["kept", "frozen"]);
    let (works, stopped, removed, rotated) = (of("works"), of("stopped"), of("removed"), of("rotated"));
    let before = activated(&works, &listener.client(), "kept");
    let backup = backed_up(&vault, "one.backup");

    let later = vault.account("Acme", "viewer");
    let later_integration = of("later");
    let saved = session.save(&small("later", 5));
    let other = small("replaced", 6);
    session.replace(&replaced, &other, false).expect(201);
    assert_eq!(session.delete(&deleted).status, 204);
    session.change_account(&disabled.id, &json!({"state": "disabled"})).expect(200);
    session.change_account(&demoted.id, &json!({"role": "viewer"})).expect(200);
    vault.run(&["account", "delete", "--email", &gone.email, "--yes"]).done();
    let mut body = changed.proof();
    body["new_password"] = json!("another rather long passphrase");
    changed.log_in(&vault.client()).post_account("password", &body).expect(204);
    vault.run(&["account", "delete", "--email", "withdrawn@example.com", "--yes"]).done();
    let invited = session.invite("grace@example.com", "viewer").expect(201).json();
    vault.run(&["org", "set", "--state", "disabled", "Closed"]).done();
    vault.run(&["org", "delete", "Erased", "--yes"]).done();
    vault.run(&["org", "create", "Newer"]).done();
    stopped.administer(&vault, "set", &["--state", "disabled"]).done();
    removed.administer(&vault, "delete", &["--yes"]).done();
    let newer = Integration::of(
        &vault,
        "rotated",
        &rotated.administer(&vault, "rotate", &["--overlap", "0", "--json"]).done().json(),
    );
    vault.run(&["namespace", "freeze", "frozen", "--org", "Acme"]).done();

    let refused = vault.run(&["restore", text(&backup), "--replace"]).refused().stderr;
    assert!(refused.contains(&format!("serve (process {})", vault.server().id())), "{refused}");
    vault.stop();
    let restored = vault.json(&["restore", text(&backup), "--replace"]);
    let lost = &restored["lost"];
    let ids = |list: &Value| list.as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&lost["credentials_saved"]), [json!(saved)], "{restored}");
    assert_eq!(ids(&lost["credentials_changed"]), [json!(replaced)], "{restored}");
    assert_eq!(ids(&lost["credentials_deleted"]), [json!(deleted)], "{restored}");
    assert_eq!(ids(&lost["accounts"]), [json!(later.id)], "{restored}");
    assert_eq!(ids(&lost["integrations"]), [json!(later_integration.id)], "{restored}");
    assert_eq!(lost["organizations"], json!(["Newer"]), "{restored}");
    assert_eq!(ids(&restored["kept"]["disabled_accounts"]), [json!(gone.id)], "{restored}");
    assert_eq!(ids(&restored["kept"]["disabled_integrations"]), [json!(removed.id)], "{restored}");
    let aside = PathBuf::from(restored["restored"]["replaced"].as_str().unwrap());
    assert!(aside.join("orgvault.db").is_file() && aside.join("orgvault.db.key").is_file());

    vault.serve();
    let states: Vec<(Value, Value)> = vault
        .json(&["account", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|account| (account["email"].clone(), account["state"].clone()))
        .collect();
    for (account, state) in [(&disabled, "disabled"), (&gone, "disabled"), (&changed, "active"), (&demoted, "active")] {
        assert!(states.contains(&(json!(account.email), json!(state))), "{state}: {states:?}");
    }
    assert!(!states.iter().any(|(email, _)| *email == json!(later.email)), "{states:?}");
    let organizations = vault.json(&["org", "list"]).to_string();
    assert!(organizations.matches("disabled").count() == 2, "Closed, and Erased: {organizations}");

    // The newer password is valid, and the older one is not.
    let client = vault.client();
    let mut login = changed.login(&next_code(&changed));
    client.log_in(&login).problem("invalid-login");
    login["password"] = json!("another rather long passphrase");
    client.log_in(&login).expect(200);
    for stopped in [&disabled, &gone, &closed, &erased] {
        client.log_in(&stopped.login(&stopped.authenticator.code(current_step()))).problem("invalid-login");
    }
    let viewer = log_in_again(&vault, &demoted, &client);
    assert_eq!(viewer.try_save(&small("kept", 9)).status, 403, "demoted since");

    let session = log_in_again(&vault, &admin, &client);
    let mut there = session.ids();
    there.sort();
    assert!(there.contains(&kept) && there.contains(&deleted) && !there.contains(&saved), "{there:?}");
    let taken = vault.client().enrol(withdrawn["enrolment_code"].as_str().unwrap(), "a rather long passphrase");
    assert!(taken.status >= 400, "it was withdrawn: {}", taken.status);
    vault.client().enrol(invited["enrolment_code"].as_str().unwrap(), "a rather long passphrase").expect(200);

    let listener = listener.client();
    assert_eq!(activated(&works, &listener, "kept"), before);
    assert_eq!(activated(&newer, &listener, "kept"), before, "the newer token works");
    for refused in [&stopped, &removed, &rotated, &later_integration] {
        assert_eq!(refused.activate(&listener, "kept").status, 401, "{}", refused.name);
    }
    assert_eq!(works.activate(&listener, "frozen").status, 403);
    assert_eq!(vault.metric("orgvault_integrity_failures_total"), 0);
}

/// Kills the restore after each of its progress lines, until one run completes.
#[test]
fn killed_restore_leaves_old_or_new_state() {
    let vault = Vault::init(Database::Sqlite);
    vault.account("Acme", "admin");
    let backup = backed_up(&vault, "one.backup");
    vault.run(&["org", "create", "Later"]).done();
    let organizations = || vault.json(&["org", "list"]).as_array().unwrap().len();
    for lines in 0.. {
        assert_eq!(organizations(), 2);
        let mut command = vault.command(&["restore", text(&backup), "--replace", "--log-format", "json"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let seen = log.by_ref().take(lines).count();
        if seen < lines {
            assert!(child.wait().unwrap().success());
            assert!(lines > 3, "progress is printed");
            break;
        }
        let _ = child.kill();
        child.wait().unwrap();
        if organizations() == 1 {
            break; // it completed before the kill
        }
    }
    assert_eq!(organizations(), 1, "the new state");
    assert_eq!(vault.json(&["account", "list"]).as_array().unwrap().len(), 1);
    vault.run(&["org", "create", "Later"]).done();
    let left = fs::read_dir(vault.data_dir()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|name| name.contains("unfinished") || name.contains("restoring")).collect();
    assert_eq!(left, Vec::<String>::new());

    // Interrupted after the decision: the next command completes the restore.
    let (new, data) = (vault.scratch("new"), vault.data_dir());
    fs::create_dir(&new).unwrap();
    fs::copy(data.join("root.key"), new.join("root.key")).unwrap();
    vault.run(&["restore", text(&backup), "--data-dir", text(&new)]).done();
    let decided = data.join("orgvault.db.restoring");
    fs::create_dir(&decided).unwrap();
    for name in ["orgvault.db", "orgvault.db.key"] {
        fs::rename(new.join(name), decided.join(name)).unwrap();
    }
    fs::create_dir(decided.join("before")).unwrap();
    fs::rename(data.join("orgvault.db"), decided.join("before/orgvault.db")).unwrap();
    assert_eq!(organizations(), 1, "the new state");
    assert!(!decided.exists());
}

/// The steps after a restore with PostgreSQL's tools.
#[test]
fn pg_restore_restores_vault() {
    let (mut vault, listener) = ActivationListener::open(Database::Postgres);
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    let before = activated(&integration, &listener.client(), "imports");
    vault.run(&["backup", text(&vault.scratch("no"))]).refused().says("pg_dump").says("docs/operate/backup.md");

    // While the server runs.
    let dump = vault.scratch("vault.dump");
    let run = |program: &str, arguments: &[&str]| Run::of(Command::new(program).args(arguments)).done();
    run("pg_dump", &["--format=custom", "--file", text(&dump), "--dbname", vault.url()]);
    session.save(&small("imports", 2));
    vault.stop();
    let url = new_postgres();
    run("pg_restore", &["--exit-on-error", "--no-owner", "--no-privileges", "--dbname", &url, text(&dump)]);
    vault.use_postgres(url.clone());
    vault.run(&["restore", text(&dump)]).refused().says("--after-external");
    let refused = vault.run(&["restore", "--after-external"]).refused().stderr;
    assert!(refused.contains("permission denied"), "the service's role may not: {refused}");

    let step = current_step();
    let settled = vault.json(&["restore", "--after-external", "--database-url", &url]);
    assert_eq!(settled["ended"]["sessions"], 1, "{settled}");
    assert_eq!(settled["ended"]["recovery_codes"], 9, "{settled}");
    assert_eq!(Sql::at(&url).value("SELECT count(*) FROM audit WHERE action = 'database.restored'"), "1");
    vault.serve();
    let client = vault.client();
    assert!(!session.on(&client).is_live(), "an older token is dead");
    for spent in [step - 1, step] {
        client.log_in(&admin.login(&admin.authenticator.code(spent))).problem("invalid-login");
    }
    let session = log_in_again(&vault, &admin, &client);
    assert_eq!(session.ids().len(), 1, "as it was when the dump began");
    assert_eq!(activated(&integration, &listener.client(), "imports"), before);
}

/// Physical backup and archived log, up to a moment before an accident.
#[test]
fn point_in_time_recovery_restores_vault() {
    let cluster = Cluster::start(Cluster::archiving());
    let mut vault = Vault::start_on(&cluster, &[]);
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let mut saved = vec![session.save(&small("imports", 1))];
    let base = cluster.base_backup();
    saved.push(session.save(&small("imports", 2)));
    cluster.mark(vault.url(), "before_the_accident");
    for id in &saved {
        assert_eq!(session.delete(id).status, 204);
    }
    vault.stop();

    let recovered = cluster.recovered(&base, "before_the_accident");
    let url = vault.url().replace(&cluster.base_url(), &recovered.base_url());
    vault.use_postgres(url.clone());
    let spent = current_step();
    vault.run(&["restore", "--after-external", "--database-url", &url]).done();
    vault.serve();
    let client = vault.client();
    assert!(!session.on(&client).is_live(), "an older token is dead");
    client.log_in(&admin.login(&admin.authenticator.code(spent))).problem("invalid-login");
    let mut ids = log_in_again(&vault, &admin, &client).ids();
    ids.sort();
    saved.sort();
    assert_eq!(ids, saved);
    vault.stop();
}
