//! `{base_url}/integrations`

use super::app::{App, JSON, NOW, integrate, members, pages, s3, text, texts};
use serde_json::{Value, json};
use vault_tests::Session;

fn list(admin: &Session) -> Vec<Value> {
    let answer = admin.get("/integrations").expect(200);
    assert!(!answer.text().contains("ovi_"), "a list shows no token");
    answer.json().as_array().expect("an array").clone()
}

#[test]
fn integration_is_created_listed_rotated_and_deleted() {
    let app = App::start();
    let admin = app.admin();
    let body =
        json!({"name": "Nightly", "namespaces": ["imports/*", "exports"], "expires_at": "2030-02-01T01:00:00+01:00"});
    let created = admin.post("/integrations", &body).expect(201).json();
    assert_eq!(members(&created), ["expires_at", "id", "name", "namespaces", "token"]);
    assert_eq!((text(&created["name"]), text(&created["expires_at"])), ("Nightly", "2030-02-01T00:00:00Z"));
    assert_eq!(created["namespaces"], json!(["exports", "imports/*"]));
    let (id, first) = (text(&created["id"]), text(&created["token"]));
    assert!(first.starts_with("ovi_") && first.len() == 53, "{first}");
    let mut expected = json!({
        "id": id, "name": "Nightly", "namespaces": ["exports", "imports/*"], "state": "active",
        "created_at": NOW, "expires_at": "2030-02-01T00:00:00Z",
    });
    assert_eq!(list(&admin), [expected.clone()]);

    let path = format!("/integrations/{id}");
    let rotated = admin.post(&format!("{path}/rotate"), &json!({"overlap": 3_600})).expect(200).json();
    assert_eq!((members(&rotated), &rotated["id"]), (members(&created), &created["id"]));
    assert_ne!(rotated["token"], created["token"]);
    expected["previous_token_until"] = json!("2030-01-01T01:00:00Z");
    assert_eq!(list(&admin), [expected.clone()]);
    app.clock.advance_seconds(3_599);
    assert_eq!(list(&admin), [expected.clone()]);
    app.clock.advance_seconds(1);
    let admin = app.admin();
    expected.as_object_mut().unwrap().remove("previous_token_until");
    assert_eq!(list(&admin), [expected]);
    admin.remove(&path).empty(204);
    assert!(list(&admin).is_empty());
    admin.remove(&path).problem("not-found");
}

#[test]
fn rotation_needs_no_body() {
    let app = App::start();
    let admin = app.admin();
    let id = text(&integrate(&admin, "nightly", &["a"])["id"]).to_owned();
    let line = format!("POST /v1/integrations/{id}/rotate");
    let until = || list(&admin)[0]["previous_token_until"].clone();
    for (headers, body, end) in [
        (&[][..], "", json!("2030-01-02T00:00:00Z")),
        (&[JSON], "{}", json!("2030-01-02T00:00:00Z")),
        (&[JSON], "{\"overlap\": 60}", json!("2030-01-01T00:01:00Z")),
        (&[JSON], "", json!("2030-01-02T00:00:00Z")),
        (&[JSON], "{\"overlap\": 604800}", json!("2030-01-08T00:00:00Z")),
        (&[JSON], "{\"overlap\": 0}", Value::Null),
    ] {
        let rotated = app.send(&line, &[&[&*admin.header()], headers].concat(), body).expect(200);
        assert_eq!(members(&rotated.json()), ["id", "name", "namespaces", "token"]);
        assert_eq!(until(), end, "{body}");
    }
    for headers in [&["Content-Type: text/plain"][..], &["Content-Encoding: gzip"]] {
        app.send(&line, &[&[&*admin.header()], headers].concat(), "").problem("unsupported-media-type");
    }
    app.send(&line, &[&admin.header(), "If-Match: \"a\""], "").problem("precondition-failed");
    app.send(&format!("{line}?overlap=1"), &[&admin.header()], "").problem("malformed-request");
    assert_eq!(until(), Value::Null, "nothing was rotated");
}

#[test]
fn integration_name_is_unique_in_its_organization() {
    let app = App::start();
    let (admin, stranger) = (app.admin(), app.stranger());
    integrate(&admin, "Nightly", &["a"]);
    for name in ["Nightly", "NIGHTLY"] {
        admin.post("/integrations", &json!({"name": name, "namespaces": ["a"]})).problem("conflict");
    }
    integrate(&stranger, "nightly", &["a"]);
    assert_eq!((list(&admin).len(), list(&stranger).len()), (1, 1));
}

#[test]
fn state_namespaces_and_expiry_are_changed() {
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    let job = listener.job(&admin, "nightly", &["imports"]);
    admin.save(&s3("exports", "b"));
    let change = |body: Value| admin.patch(&format!("/integrations/{}", job.id), &body);
    let changed = change(json!({"namespaces": ["exports", "in/*"], "expires_at": "2030-02-01T00:00:00Z"}));
    let expected = json!({
        "id": job.id, "name": "nightly", "namespaces": ["exports", "in/*"], "state": "active",
        "created_at": NOW, "expires_at": "2030-02-01T00:00:00Z",
    });
    assert_eq!(changed.expect(200).json(), expected);
    assert_eq!(list(&admin), [expected]);
    job.activate("exports").expect(201);
    assert_eq!(list(&admin)[0]["last_used_at"], json!(NOW));
    job.activate("imports").problem("namespace-not-allowed");
    assert_eq!(change(json!({"state": "disabled"})).json()["state"], json!("disabled"));
    job.activate("exports").problem("invalid-token");
    let enabled = change(json!({"state": "active", "expires_at": null})).json();
    assert_eq!((&enabled["state"], enabled.get("expires_at")), (&json!("active"), None));
    job.activate("exports").expect(201);
    admin.patch("/integrations/x", &json!({"state": "active"})).problem("not-found");
}

#[test]
fn integrations_are_paginated() {
    let app = App::start();
    let admin = app.admin();
    for name in ["e", "b", "d", "a", "C"] {
        integrate(&admin, name, &["imports"]);
    }
    let paged = pages(&admin, "/integrations?limit=2");
    let names: Vec<_> = paged.iter().map(|page| texts(page, "name").concat()).collect();
    assert_eq!(names, ["ab", "Cd", "e"]);
}

#[test]
fn usage_counts_activations_and_denied_requests() {
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    admin.save(&s3("imports", "b"));
    let nightly = listener.job(&admin, "nightly", &["imports"]);
    listener.job(&admin, "unused", &["imports"]);
    nightly.activate("imports").expect(201);
    app.clock.advance_seconds(3_600);
    nightly.activate("imports").expect(201);
    app.clock.advance_seconds(60);
    nightly.activate("elsewhere").expect(403);
    app.seal_audit();
    let usage = |admin: &Session, query: &str| admin.get(&format!("/integrations/usage{query}")).expect(200).json();
    let item = |activations: i64| {
        json!([{
            "id": nightly.id, "activations": activations, "last_activated_at": "2030-01-01T01:00:00Z", "denied": 1,
            "last_denied_at": "2030-01-01T01:01:00Z",
        }])
    };
    let admin = app.admin();
    for (query, expected) in [
        ("", item(2)),
        ("?since=2029-01-01T00:00:00Z", item(2)),
        ("?since=2030-01-01T00:30:00Z", item(1)),
        ("?since=2030-01-02T00:00:00Z", json!([])),
    ] {
        assert_eq!(usage(&admin, query), expected, "{query}");
    }
    app.clock.advance_seconds(31 * 86_400);
    assert_eq!(usage(&app.admin(), "?since=2029-01-01T00:00:00Z"), json!([]), "at most 30 days");
}
