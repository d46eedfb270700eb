//! Checks of a credential before it is saved.

use super::app::{App, s3};
use super::credentials::VAULT;
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_tests::{Answer, Session};

fn verifying() -> App {
    App::with(|setup| setup.verifying())
}

#[track_caller]
fn verify(session: &Session, body: &Value) -> Answer {
    session.patch(&format!("{VAULT}?verify=true"), body)
}

#[test]
fn credential_accepted_by_store_is_saved() {
    let app = verifying();
    let editor = app.editor();
    verify(&editor, &s3("a", "b")).expect(201);
    let probed = app.storage.probed();
    assert_eq!((probed.len(), probed[0].operations.len(), probed[0].until), (1, 0, None), "it only authenticates");
    for query in ["", "?verify=false"] {
        editor.patch(&format!("{VAULT}{query}"), &s3("a", "b")).expect(201);
    }
    assert_eq!((app.storage.probed().len(), editor.list().len()), (1, 3));
}

#[test]
fn check_before_save_sets_first_health() {
    let app = verifying();
    let editor = app.editor();
    let id = verify(&editor, &s3("a", "b")).json()["id"].as_str().unwrap().to_owned();
    let show = |path: &str| editor.get(&format!("{VAULT}/{id}{path}")).expect(200).json();
    let healthy = |at: &str| json!({"state": "healthy", "checked_at": at, "since": at});
    assert_eq!(show("")["health"], healthy(super::app::NOW));
    for (stage, at) in [(true, "2030-01-01T00:01:00Z"), (false, "2030-01-01T00:02:00Z")] {
        app.clock.advance_seconds(60);
        let body = json!({"data": s3("a", "b")["data"], "stage": stage});
        editor.post(&format!("{VAULT}/{id}/versions?verify=true"), &body).expect(201);
        assert_eq!(show("/versions")[usize::from(stage)]["health"], healthy(at));
    }
    assert_eq!(show("")["health"], healthy("2030-01-01T00:02:00Z"));
}

#[test]
fn failing_credential_is_refused_with_reason_and_remedy() {
    let app = verifying();
    let editor = app.editor();
    app.storage.fail(Some(CheckReason::SignatureMismatch));
    let call = |bucket: &str| {
        let call = editor.call("PATCH", &format!("/v1{VAULT}?verify=true")).header("idempotency-key", "a");
        call.json(&s3("a", bucket)).send()
    };
    let answer = call("secret-bucket").problem("not-usable");
    let problem: vault_api::Problem = serde_json::from_slice(&answer.body).unwrap();
    let checks: Vec<_> = problem.checks.iter().map(|check| (&*check.check, &*check.result)).collect();
    assert_eq!(checks, [("settings", "warning"), ("authenticate", "failed")]);
    let failed = &problem.checks[1];
    assert_eq!(failed.reason.as_deref(), Some("signature-mismatch"));
    assert_eq!(failed.remedy.as_deref(), Some(CheckReason::SignatureMismatch.remedy()));
    assert!(problem.errors.is_empty());
    for value in ["secret-bucket", "wJalrXUtnFEMI", "AKIA"] {
        assert!(!answer.text().contains(value), "{}", answer.text());
    }
    assert!(editor.list().is_empty());
    app.storage.fail(None);
    call("b").expect(201); // the key was not spent
}

#[test]
fn violations_and_roles_are_checked_before_store() {
    let app = verifying();
    let (editor, viewer) = (app.editor(), app.viewer());
    for query in ["verify", "verify=", "verify=1", "verify=True", "verify=true&verify=true", "verify=true&x=1"] {
        editor.patch(&format!("{VAULT}?{query}"), &s3("a", "b")).problem("malformed-request");
    }
    verify(&editor, &s3("..", "b")).refuses(422, &["/namespace"]);
    verify(&viewer, &s3("a", "b")).problem("insufficient-role");
    editor.log_out().expect(204);
    verify(&editor, &s3("a", "b")).problem("invalid-token");
    assert!(app.storage.probed().is_empty());
}

#[test]
fn check_without_configuration_is_refused_before_body() {
    let app = App::start();
    let editor = app.editor();
    let call = editor.call("PATCH", &format!("/v1{VAULT}?verify=true")).json_text("{");
    call.send().refuses(400, &["/verify"]);
    editor.patch(&format!("{VAULT}?verify=false"), &s3("a", "b")).expect(201); // nothing was asked for
}
