//! Metadata of credentials: search, health and uses.

use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::samples::{s3, small};
use vault_tests::{ActivationListener, Database, Integration, Session, Vault};

fn with(mut save: Value, more: &Value) -> Value {
    save.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    save
}

fn found(session: &Session, query: &str) -> Vec<String> {
    let answer = session.call("GET", &format!("/v1/organization-vault?{query}")).send().expect(200);
    answer.json().as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn labels_find_only_own_credentials() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let [acme, globex] = ["Acme", "Globex"].map(|name| vault.account(name, "editor").log_in(&client));
    let labels = json!({"labels": {"team": "data", "env": "prod"}, "description": "the nightly import"});
    let theirs = globex.save(&with(small("a", 1), &labels));
    let ours = acme.save(&with(small("a", 1), &labels));
    let other =
        acme.save(&with(small("a", 2), &json!({"labels": {"team": "data"}, "expires_at": "2026-01-01T00:00:00Z"})));
    assert_eq!(found(&acme, "label=team:data"), [&*other, &*ours]);
    assert_eq!(found(&acme, "label=team:data&label=env:prod"), [&*ours]);
    assert_eq!(found(&acme, "health=expired"), [&*other]);
    assert_eq!(found(&acme, "expires_before=2027-01-01T00:00:00Z"), [&*other]);
    assert_eq!(found(&globex, "label=team:data"), [&*theirs]);
    acme.describe(&ours, &json!({"labels": {"team": null}, "expires_at": "2026-02-01T00:00:00Z"})).expect(200);
    assert_eq!(found(&acme, "label=team:data"), [&*other]);
    assert_eq!(found(&acme, "expires_before=2027-01-01T00:00:00Z"), [&*other, &*ours], "the soonest first");
    acme.delete(&other).expect(204);
    assert_eq!(found(&acme, "label=team:data"), [""; 0]);
    assert_eq!(found(&acme, "label=env:prod"), [&*ours]);
    // A declared expiry time belongs to its version.
    acme.replace(&ours, &small("a", 3), false).expect(201);
    assert_eq!(acme.show(&ours).json().get("expires_at"), None);
    assert_eq!(acme.promote(&ours, 1).expect(200).json()["expires_at"], "2026-02-01T00:00:00Z");
    assert_eq!(acme.show(&ours).json()["description"], "the nightly import");
}

#[test]
fn activation_listener_enforces_short_rule() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let admin = vault.admin_session();
    let editor = vault.account("Acme", "editor").log_in(&vault.client());
    let id = editor.save(&with(s3().request, &json!({"vend": "short"})));
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    for vend in ["raw", "prefer-short", "short"] {
        let body = json!({"namespace": "imports/nightly", "vend": vend});
        let answer = integration.activate_with(&activation_listener.client(), &body);
        assert_eq!(answer.status, 409, "{vend}: no role can be assumed from here, and nothing else is issued");
        assert!(!answer.text().contains("pN7s0"), "{}", answer.text());
    }
    editor.describe(&id, &json!({"vend": "any"})).problem("insufficient-role");
    admin.describe(&id, &json!({"vend": "any"})).expect(200);
    integration.activate(&activation_listener.client(), "imports/nightly").expect(201);
}

#[test]
fn matches_are_counted_for_all_sessions() {
    let vault = Vault::start(Database::Sqlite);
    let sessions = [vault.admin_session(), vault.admin_session()];
    let id = sessions[0].save(&small("a", 1));
    for round in 0..10 {
        let answer = sessions[round % 2].matches(&id, &small("a", 1 + round % 3)).expect(200);
        assert_eq!(answer.json(), json!({"same": round % 3 == 0}));
    }
    for session in &sessions {
        session.matches(&id, &small("a", 1)).problem("too-many-requests");
    }
    assert!(vault.log().contains("credential.matched"));
}

/// Waits for the result of a version's check.
fn checked(session: &Session, id: &str, version: i64) -> Value {
    let began = Instant::now();
    loop {
        let versions = session.call("GET", &format!("/v1/organization-vault/{id}/versions")).send().expect(200).json();
        let found = versions.as_array().unwrap().iter().find(|found| found["version"] == version).cloned().unwrap();
        if let Some(health) = found.get("health") {
            return health.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no result of a check: {versions}");
        thread::sleep(Duration::from_millis(50)); // leaves processor time to the server
    }
}

#[test]
fn activation_process_runs_requested_check() {
    let (vault, _activation_listener) = ActivationListener::open(Database::Sqlite);
    let session = vault.admin_session();
    // The server may not connect to this address.
    let mut save = small("a", 1);
    save["data"]["endpoint"] = json!("https://127.0.0.1:9");
    let id = session.save(&save);
    let check = |body: &Value| session.call("POST", &format!("/v1/organization-vault/{id}/check")).json(body).send();
    let began = Instant::now();
    while check(&json!({})).status == 409 {
        assert!(began.elapsed() < Duration::from_secs(60), "the activation side does not show");
        thread::sleep(Duration::from_millis(50));
    }
    let health = checked(&session, &id, 1);
    assert_eq!((&health["state"], &health["reason"]), (&json!("failing"), &json!("blocked-egress")), "{health}");
    assert_eq!(session.show(&id).json()["health"]["state"], "failing");
    session.replace(&id, &save, true).expect(201);
    check(&json!({})).expect(202);
    assert_eq!(checked(&session, &id, 2)["state"], "failing", "the staged version unless another is named");
    check(&json!({"version": 3})).problem("not-found");
    assert!(vault.log().contains("credential.failing"));
    assert!(vault.metric("orgvault_credential_health_changes_total") > 0);
}

#[test]
fn users_of_credential_are_shown_before_change() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let session = vault.admin_session();
    let id = session.save(&small("imports", 1));
    let integration = Integration::make(&vault, "nightly", &["imports"]);
    let body = json!({"namespace": "imports", "purpose": "the import of 2 o'clock"});
    integration.activate_with(&activation_listener.client(), &body).expect(201);
    let uses = session.call("GET", &format!("/v1/organization-vault/{id}/activations")).send().expect(200).json();
    let [used] = &uses.as_array().unwrap()[..] else { panic!("{uses}") };
    assert_eq!(
        (&used["integration"], &used["form"], &used["purpose"]),
        (&json!("nightly"), &json!("raw"), &body["purpose"])
    );
    assert!(session.show(&id).json()["last_activated_at"].is_string());
    integration.administer(&vault, "delete", &["--yes"]).done();
    let uses = session.call("GET", &format!("/v1/organization-vault/{id}/activations")).send().expect(200).json();
    assert_eq!(uses[0]["integration"], *integration.id, "a deleted one is named by its id");
}

/// Everything that must be identical for indistinguishable responses: status, headers, body.
type Indistinct = (u16, Vec<(String, String)>, String);

/// Sends every request of this file about the credential `id`.
fn asked(session: &Session, id: &str) -> Vec<Indistinct> {
    let path = format!("/v1/organization-vault/{id}");
    let data = small("a", 1)["data"].clone();
    let bodies = [
        ("PATCH", "", Some(json!({"labels": {"team": "data"}}))),
        ("PATCH", "", Some(json!({"labels": 1, "vend": "raw"}))),
        ("POST", "/match", Some(json!({"data": data}))),
        ("POST", "/check", Some(json!({"version": 1}))),
        ("POST", "/check", None),
        ("GET", "/activations", None),
    ];
    let answers = bodies.into_iter().map(|(method, below, body)| {
        let call = session.call(method, &format!("{path}{below}"));
        let answer = match &body {
            Some(body) => call.json(body).send(),
            None => call.send(),
        };
        answer.indistinct()
    });
    answers.collect()
}

#[test]
fn foreign_credential_is_like_unknown_one() {
    let (vault, _activation_listener) = ActivationListener::open(Database::Sqlite);
    let client = vault.client();
    let [acme, globex] = ["Acme", "Globex"].map(|name| vault.account(name, "admin").log_in(&client));
    let theirs = globex.save(&with(small("a", 1), &json!({"labels": {"team": "web"}})));
    let before = globex.show(&theirs).expect(200).indistinct();
    let unknown = asked(&acme, "0193aaaa-0000-7000-8000-000000000000");
    assert!(unknown.iter().all(|(status, ..)| matches!(status, 400 | 404)), "{unknown:?}");
    for _ in 0..12 {
        assert_eq!(asked(&acme, &theirs), unknown, "however often");
    }
    assert_eq!(globex.show(&theirs).expect(200).indistinct(), before);
    globex.matches(&theirs, &small("a", 1)).expect(200);
}
