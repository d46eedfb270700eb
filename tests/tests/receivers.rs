//! Notifications to a webhook server that verifies them with the Standard Webhooks library, and to a mail server.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vault_testkit::stores::find_tool;
use vault_tests::integration::{ActivationListener, write_private};
use vault_tests::receivers::{Receivers, SOON};
use vault_tests::samples::small;
use vault_tests::{Database, Integration, Session, Vault, on_both_databases};

on_both_databases! {
    expiries_within_a_threshold_are_announced_once,
    killed_server_delivers_all_events,
    instance_has_separate_receivers,
}

fn open(database: Database) -> (Receivers, Vault, Session) {
    let receivers = Receivers::start();
    let (vault, _activation_listener) = ActivationListener::open_with(database, &receivers.flags());
    let admin = vault.admin_session();
    (receivers, vault, admin)
}

fn add(admin: &Session, body: &Value) -> Value {
    admin.call("POST", "/v1/receivers").json(body).send().expect(201).json()
}

fn freeze(admin: &Session, namespace: &str, frozen: bool) {
    let path = if frozen { "/v1/namespaces/freeze" } else { "/v1/namespaces/thaw" };
    admin.call("POST", path).json(&json!({"namespace": namespace})).send().expect(200);
}

fn deliveries(admin: &Session, id: &str) -> Vec<Value> {
    let answer = admin.get(&format!("/receivers/{id}/deliveries")).expect(200).json();
    answer.as_array().unwrap().clone()
}

/// Waits until the deliveries are in the expected state.
#[track_caller]
fn eventually<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn events_are_delivered_without_an_activation_listener() {
    let mut receivers = Receivers::start();
    let flags = receivers.flags();
    let vault = Vault::start_with(Database::Sqlite, &flags.iter().map(|flag| &**flag).collect::<Vec<_>>());
    let admin = vault.admin_session();
    let added = add(&admin, &json!({"kind": "webhook", "url": receivers.url("/hooks")}));
    receivers.command(&format!("secret /hooks {}", added["secret"].as_str().unwrap()));
    admin.call("POST", &format!("/v1/receivers/{}/test", added["id"].as_str().unwrap())).send().expect(202);
    assert_eq!(receivers.next("/hooks", "receiver.test")["verified"], true);
}

#[test]
fn webhooks_are_delivered_and_verified() {
    let (mut receivers, vault, admin) = open(Database::Sqlite);
    let added = add(&admin, &json!({"kind": "webhook", "url": receivers.url("/hooks?token=hidden")}));
    let (id, secret) = (added["id"].as_str().unwrap(), added["secret"].as_str().unwrap());
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert_eq!(added["url"], format!("{}/…", receivers.web));
    assert_eq!((&added["state"], &added["kind"]), (&json!("active"), &json!("webhook")));
    let path = "/hooks?token=hidden";
    receivers.command(&format!("secret {path} {secret}"));
    admin.call("POST", &format!("/v1/receivers/{id}/test")).send().expect(202);
    let test = receivers.next(path, "receiver.test");
    assert_eq!(test["verified"], true);

    let credential = admin.save(&small("imports/nightly", 1));
    admin.replace(&credential, &small("imports/nightly", 2), false).expect(201);
    let replaced = receivers.next(path, "credential.replaced");
    assert_eq!(replaced["verified"], true);
    let data = &replaced["body"]["data"];
    assert_eq!((&data["id"], &data["namespace"]), (&json!(credential), &json!("imports/nightly")));
    assert!(data["organization"].is_string() && replaced["body"]["timestamp"].is_string());
    assert_eq!(data.as_object().unwrap().len(), 3, "{data}");

    // The other library verifies the message too, and rejects another body.
    let node = |body: &str| {
        let script = "const {Webhook}=await import(process.argv[1]); \
            new Webhook(process.argv[2]).verify(process.argv[3],JSON.parse(process.argv[4]));";
        let headers: BTreeMap<String, Value> = serde_json::from_value(replaced["headers"].clone()).unwrap();
        let headers: BTreeMap<_, _> = headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
        let library =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/node_modules/standardwebhooks/dist/index.js");
        let mut command = Command::new(find_tool("node"));
        command.args(["--input-type=module", "-e", script]).arg(library).args([secret, body]);
        command.arg(serde_json::to_string(&headers).unwrap()).stderr(Stdio::null());
        command.status().unwrap().success()
    };
    let raw = replaced["raw"].as_str().unwrap();
    assert!(node(raw));
    assert!(!node(&raw.replace("nightly", "daily")));

    // After a rotation, both secrets sign messages.
    let rotated = admin.call("POST", &format!("/v1/receivers/{id}/rotate-secret")).send().expect(200).json();
    let next = rotated["secret"].as_str().unwrap();
    assert_ne!(next, secret);
    freeze(&admin, "imports/nightly", true);
    let frozen = receivers.next(path, "namespace.frozen");
    assert_eq!((&frozen["verified"], &frozen["signatures"]), (&json!(true), &json!(2)));
    receivers.command(&format!("secret {path} {next}"));
    freeze(&admin, "imports/nightly", false);
    assert_eq!(receivers.next(path, "namespace.thawed")["verified"], true);
    admin.delete(&credential).expect(204);
    assert_eq!(receivers.next(path, "credential.deleted")["body"]["data"]["id"], credential);

    let listed = admin.get("/receivers").expect(200).json();
    assert!(listed[0]["last_delivered_at"].is_string() && listed[0].get("secret").is_none(), "{listed}");
    for secret in [secret, next, "hidden"] {
        assert!(!listed.to_string().contains(secret) && !vault.log().contains(secret));
    }
    let reported = eventually("the end of all deliveries", || {
        let reported = deliveries(&admin, id);
        reported.iter().all(|one| one["state"] == "delivered").then_some(reported)
    });
    let kinds: Vec<_> = reported.iter().rev().map(|one| one["type"].as_str().unwrap()).collect();
    let expected =
        ["receiver.test", "credential.replaced", "namespace.frozen", "namespace.thawed", "credential.deleted"];
    assert_eq!(kinds, expected);
    // A resent event has the same ID.
    let event = reported[0]["id"].as_str().unwrap();
    admin.call("POST", &format!("/v1/receivers/{id}/deliveries/{event}/resend")).send().expect(202);
    assert_eq!(receivers.next(path, "credential.deleted")["id"], format!("msg_{event}"));
    admin.remove(&format!("/receivers/{id}")).expect(204);
    assert_eq!(admin.get("/receivers").expect(200).json(), json!([]));
}

#[test]
fn failed_deliveries_are_retried() {
    let (mut receivers, _vault, admin) = open(Database::Sqlite);
    let make = |path: &str| {
        let events = ["namespace.frozen", "namespace.thawed"];
        let added = add(&admin, &json!({"kind": "webhook", "url": receivers.url(path), "events": events}));
        added["id"].as_str().unwrap().to_owned()
    };
    let ids = ["/works", "/errors", "/moved", "/gone", "/hangs"].map(make);
    for command in ["answer /errors 500", "answer /moved 302", "answer /gone 410", "hang /hangs 30"] {
        receivers.command(command);
    }
    freeze(&admin, "imports", true);
    // A receiver that hangs does not delay others.
    receivers.next("/works", "namespace.frozen");
    let state = |id: &str| {
        let listed = admin.get("/receivers").expect(200).json();
        let found = listed.as_array().unwrap().iter().find(|one| one["id"] == *id).cloned().unwrap();
        (found["state"].as_str().unwrap().to_owned(), found["last_error"].as_str().map(str::to_owned))
    };
    for (id, error, expected) in
        [(&ids[1], "refused", "active"), (&ids[2], "redirected", "active"), (&ids[3], "gone", "disabled")]
    {
        eventually(error, || (state(id) == (expected.to_owned(), Some(error.to_owned()))).then_some(()));
    }
    receivers.command("answer /errors 200");
    // The next automatic attempt is within a minute. Resend it immediately.
    let event = deliveries(&admin, &ids[1])[0]["id"].as_str().unwrap().to_owned();
    admin.call("POST", &format!("/v1/receivers/{}/deliveries/{event}/resend", ids[1])).send().expect(202);
    let reported = receivers.next("/errors", "namespace.frozen");
    assert_eq!(reported["status"], 200);
    eventually("the second attempt", || {
        let reported = deliveries(&admin, &ids[1]);
        (reported[0]["state"] == "delivered" && reported[0]["attempts"].as_i64() >= Some(2)).then_some(())
    });
    eventually("the end of what hangs", || (state(&ids[4]).1.as_deref() == Some("unreachable")).then_some(()));

    for url in ["https://10.0.0.1/x", "https://169.254.169.254/latest"] {
        admin.post("/receivers", &json!({"kind": "webhook", "url": url})).refuses(422, &["/url"]);
    }
}

#[test]
fn mail_is_sent_to_users_as_digest() {
    let (receivers, vault, admin) = open(Database::Sqlite);
    let colleague = vault.account("Acme", "viewer");
    let added = add(&admin, &json!({"kind": "email", "to": colleague.email}));
    assert_eq!(added["to"], colleague.email);
    assert!(added.get("secret").is_none(), "{added}");
    let id = added["id"].as_str().unwrap();
    freeze(&admin, "imports/nightly", true);
    let mail = receivers.wait(|message| message["mail"] == json!([colleague.email]));
    assert_eq!(mail["from"], "OrgVault <vault@example.com>");
    assert_eq!(mail["auto"], "auto-generated");
    let text = mail["text"].as_str().unwrap();
    for expected in ["A namespace was frozen.", "imports/nightly", "until it is thawed", "http"] {
        assert!(text.contains(expected), "{text}");
    }
    // The other events of the hour are queued. A test message is sent immediately.
    freeze(&admin, "imports/nightly", false);
    eventually("what waits", || (deliveries(&admin, id)[0]["type"] == "namespace.thawed").then_some(()));
    admin.call("POST", &format!("/v1/receivers/{id}/test")).send().expect(202);
    let test = receivers.wait(|message| message["mail"].is_array());
    assert_eq!(test["subject"], "[OrgVault] This is a test.");
    let thawed = deliveries(&admin, id).into_iter().find(|one| one["type"] == "namespace.thawed").unwrap();
    assert_eq!((&thawed["state"], &thawed["attempts"]), (&json!("waiting"), &json!(0)));

    // A deleted or disabled user gets no notifications.
    let account = admin.accounts()[&colleague.email]["id"].as_str().unwrap().to_owned();
    admin.change_account(&account, &json!({"state": "disabled"})).expect(200);
    admin.call("POST", &format!("/v1/receivers/{id}/test")).send().expect(202);
    eventually("its end", || {
        let listed = admin.get("/receivers").expect(200).json();
        (listed[0]["state"] == "disabled" && listed[0]["last_error"] == "no-member").then_some(())
    });
}

#[test]
fn mail_authenticates_after_starttls_or_reports_error() {
    let receivers = Receivers::start();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    write_private(&config, &format!("smtp-password = {:?}\n", Receivers::PASSWORD));
    let test = |smtp: &str| {
        let from = ["--smtp-from", "OrgVault <vault@example.com>", "--config", config.to_str().unwrap()];
        let (vault, listener) =
            ActivationListener::open_with(Database::Sqlite, &[&from[..], &["--smtp-url", smtp]].concat());
        let admin = vault.admin_session();
        let id = add(&admin, &json!({"kind": "email", "to": vault.account("Acme", "viewer").email}));
        let id = id["id"].as_str().unwrap().to_owned();
        admin.call("POST", &format!("/v1/receivers/{id}/test")).send().expect(202);
        (vault, listener, admin, id)
    };
    let sent = test(&receivers.smtp_login);
    let mail = receivers.wait(|message| message["mail"].is_array());
    assert_eq!(mail["subject"], "[OrgVault] This is a test.");
    drop(sent);
    let (_vault, _activation_listener, admin, id) = test(&receivers.smtp_no_login);
    eventually("the reason", || (deliveries(&admin, &id)[0]["last_error"] == "login-not-offered").then_some(()));
}

/// An expiry is set after one or more thresholds have passed: only the nearest is announced, immediately and once.
fn expiries_within_a_threshold_are_announced_once(database: Database) {
    let (receivers, _vault, admin) = open(database);
    let added =
        add(&admin, &json!({"kind": "webhook", "url": receivers.url("/hooks"), "events": ["credential.expiring"]}));
    let within = |hours: i64| {
        let at = time::OffsetDateTime::now_utc() + time::Duration::hours(hours);
        format!("{}T{:02}:{:02}:{:02}Z", at.date(), at.hour(), at.minute(), at.second())
    };
    let next = || receivers.next("/hooks", "credential.expiring")["body"]["data"].clone();
    let mut request = small("imports/nightly", 1);
    request["expires_at"] = within(20).into();
    let id = admin.save(&request);
    let reported = next();
    assert_eq!((&reported["days"], &reported["namespace"]), (&json!(1), &json!("imports/nightly")));
    let change = |body: Value| admin.patch(&format!("/organization-vault/{id}"), &body).expect(200);
    // Another change, or setting the same expiry, announces nothing.
    change(json!({"labels": {"team": "data"}}));
    change(json!({"expires_at": within(5 * 24)}));
    assert_eq!(next()["days"], 7);
    let receiver = added["id"].as_str().unwrap();
    assert_eq!(deliveries(&admin, receiver).len(), 2);
}

fn killed_server_delivers_all_events(database: Database) {
    let (receivers, mut vault, admin) = open(database);
    add(&admin, &json!({"kind": "webhook", "url": receivers.url("/hooks")}));
    let names: Vec<String> = (0..12).map(|number| format!("batch/{number}")).collect();
    let session = admin;
    for (number, name) in names.iter().enumerate() {
        freeze(&session.on(&vault.client()), name, true);
        if number % 4 == 3 {
            vault.kill_and_restart();
        }
    }
    let mut left: Vec<&String> = names.iter().collect();
    while !left.is_empty() {
        let reported = receivers.next("/hooks", "namespace.frozen");
        left.retain(|name| reported["body"]["data"]["namespace"] != ***name);
    }
}

fn instance_has_separate_receivers(database: Database) {
    let (receivers, mut vault, admin) = open(database);
    let added = vault.json(&["receiver", "add", "--url", &receivers.url("/ops")]);
    let id = added["id"].as_str().unwrap();
    assert!(added["secret"].as_str().unwrap().starts_with("whsec_"));
    vault.run(&["receiver", "test", id]).done();
    receivers.next("/ops", "receiver.test");
    // Organizations do not see receivers of the instance, which in turn get no events of organizations.
    assert_eq!(admin.get("/receivers").expect(200).json(), json!([]));
    freeze(&admin, "imports", true);
    let reported = eventually("deliveries", || {
        let reported = vault.json(&["receiver", "deliveries", id]);
        (reported[0]["state"] == "delivered").then_some(reported)
    });
    assert_eq!(reported.as_array().unwrap().len(), 1, "{reported}");
    let changed = vault.json(&["receiver", "change", id, "--event", "backup.failed,inspection.found"]);
    assert_eq!(changed["events"], json!(["backup.failed", "inspection.found"]));
    assert_eq!(vault.run(&["receiver", "change", id, "--event", "credential.expired"]).status, Some(1));
    let listed = vault.json(&["receiver", "list"]);
    assert_eq!((&listed[0]["state"], &listed[0]["url"]), (&json!("active"), &json!(format!("{}/…", receivers.web))));
    let rotated = vault.json(&["receiver", "rotate-secret", id]);
    assert_ne!(rotated["secret"], added["secret"]);
    if database == Database::Sqlite {
        // A failing backup is reported once.
        let directory = vault.scratch("backups");
        fs::create_dir(&directory).unwrap();
        vault.stop();
        let to = directory.to_str().unwrap().to_owned();
        vault.serve_with(&["--backup-every", "1s", "--backup-to", &to]);
        fs::remove_dir_all(&directory).unwrap();
        receivers.next("/ops", "backup.failed");
    }
    vault.run(&["receiver", "remove", id]).done();
    assert_eq!(vault.run(&["receiver", "test", id]).status, Some(1));
}

/// Expiry events depend on the vault's clock: an integration that expires within a day is announced.
#[test]
fn expiries_are_reported() {
    let (receivers, vault, admin) = open(Database::Sqlite);
    add(&admin, &json!({"kind": "webhook", "url": receivers.url("/hooks")}));
    let soon = time::OffsetDateTime::now_utc() + time::Duration::seconds(24 * 3600 + 8);
    let text = soon.format(&time::format_description::well_known::Rfc3339).unwrap();
    let body = json!({"name": "nightly", "namespaces": ["imports"], "expires_at": text});
    let created = admin.post("/integrations", &body).expect(201).json();
    let mut save = small("imports", 1);
    save["expires_at"] = json!(text);
    let credential = admin.save(&save);
    let mut reported = BTreeMap::new();
    while reported.len() < 2 {
        let message = receivers.wait(|message| message["body"]["data"]["days"] == 1);
        let data = message["body"]["data"].clone();
        reported.insert(data["id"].as_str().unwrap().to_owned(), message["body"]["type"].clone());
    }
    let integration = created["id"].as_str().unwrap().to_owned();
    let expected = [(credential, json!("credential.expiring")), (integration, json!("integration.token-expiring"))];
    assert_eq!(reported, BTreeMap::from(expected));
    let _ = vault;
}

/// A job that requests a frozen namespace, and an account under a guessing attack, are each reported once.
#[test]
fn refusals_are_reported() {
    let receivers = Receivers::start();
    let (vault, listener) = ActivationListener::open_with(Database::Sqlite, &receivers.flags());
    let admin = vault.admin_session();
    add(&admin, &json!({"kind": "webhook", "url": receivers.url("/hooks")}));
    admin.save(&small("imports", 1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    freeze(&admin, "imports", true);
    for _ in 0..3 {
        integration.activate(&listener.client(), "imports").expect(403);
    }
    let reported = receivers.next("/hooks", "integration.refused-after-freeze");
    assert_eq!(reported["body"]["data"]["namespace"], "imports");
    let colleague = vault.account("Acme", "admin");
    assert_eq!(receivers.next("/hooks", "account.admin-added")["body"]["data"]["id"], colleague.id);
    let code = colleague.recovery_code();
    vault.client().log_in(&colleague.login(&code)).expect(200);
    let used = receivers.next("/hooks", "account.recovery-code-used");
    assert_eq!(used["body"]["data"]["id"], colleague.id);
    admin.re_enrol(&colleague.id).expect(201);
    receivers.next("/hooks", "account.re-enrolled");
}
