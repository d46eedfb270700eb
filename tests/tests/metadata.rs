//! Checks of credentials by the running program.

use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Database, Session};

/// Waits for the result of a version's check.
fn checked(session: &Session, id: &str, version: i64) -> Value {
    let began = Instant::now();
    loop {
        let versions = session.get(&format!("/organization-vault/{id}/versions")).expect(200).json();
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
