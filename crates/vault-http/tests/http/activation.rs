//! Activations: issued credentials and refusals.

use crate::support::{ActivationListener, World, assert_problem, assert_standard_headers, s3};
use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::port::StoreError;
use vault_core::role::Role;
use vault_core::sealed::Blob;

const UNKNOWN: &str = "0193aaaa-0000-7000-8000-000000000000";

fn activate(activation_listener: &ActivationListener, token: &str, body: &Value) -> crate::support::Response {
    activation_listener.send_json("POST /v1/activations", token, body)
}

#[test]
fn activation_issues_credentials_of_namespace() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    let (first, second) =
        (world.save(&admin, "imports/nightly", "b1"), world.save_role(&admin, "imports/nightly", "b2"));
    world.save(&admin, "imports", "elsewhere");
    world.save(&world.token_in("Other", Role::Admin), "imports/nightly", "theirs");
    let (_, token) = world.integration(&admin, "nightly", &["imports/*"]);

    let body = json!({"namespace": "imports/nightly", "purpose": "the nightly import", "ttl": 600});
    let response = activate(&activation_listener, &token, &body);
    assert_standard_headers(&response, "an activation");
    assert_eq!((response.status, response.header("content-type")), (201, Some("application/json")));
    let started = response.json();
    let id = started["id"].as_str().unwrap();
    let data = |bucket: &str| {
        json!({
            "access_key_id": "AKIA2TESTONLY7SAMPLE", "bucket": bucket,
            "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET",
        })
    };
    let mut with_role = data("b2");
    with_role["role_arn"] = json!("arn:aws:iam::123456789012:role/batch");
    let item = |id: &str, data: Value| json!({"id": id, "type": "s3", "version": 1, "form": "raw", "data": data});
    assert_eq!(
        started,
        json!({
            "id": id, "namespace": "imports/nightly", "expires_at": "2030-01-01T00:10:00Z",
            "credentials": [item(&first, data("b1")), item(&second, with_role)],
        })
    );
    let read: vault_api::BegunActivation = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(read.credentials.len(), 2);

    let listed = activation_listener.send("GET /v1/activations", &[&token], "");
    assert_standard_headers(&listed, "live activations");
    let expected = json!([{
        "id": id, "namespace": "imports/nightly", "vend": "raw", "credential_count": 2,
        "started_at": "2030-01-01T00:00:00Z", "expires_at": "2030-01-01T00:10:00Z",
    }]);
    assert_eq!(listed.json(), expected);
    let ended = activation_listener.send(&format!("DELETE /v1/activations/{id}"), &[&token], "");
    assert_standard_headers(&ended, "an end");
    assert_eq!((ended.status, ended.body.len(), ended.header("content-type")), (204, 0, None));
    assert!(activation_listener.live(&token).is_empty());
}

#[test]
fn requested_form_is_issued_or_nothing() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save_role(&admin, "role", "b");
    let plain = world.save(&admin, "plain", "b");
    let (_, token) = world.integration(&admin, "nightly", &["role", "plain"]);
    let asked = |namespace: &str, vend: &str| {
        activate(&activation_listener, &token, &json!({"namespace": namespace, "vend": vend}))
    };
    for vend in ["short", "prefer-short"] {
        let response = asked("role", vend);
        assert_eq!(response.status, 201, "{}", response.text());
        let started = response.json();
        let credential = &started["credentials"][0];
        assert_eq!((&credential["form"], &credential["expires_at"]), (&json!("short"), &started["expires_at"]));
        assert_eq!(started["expires_at"], "2030-01-01T01:00:00Z", "an hour where nothing is asked for");
        assert_eq!(credential["data"]["session_token"], "short-lived token");
        assert!(!response.text().contains("wJalrXUtnFEMI"), "the long-lived secret is not in it");
    }
    let credential = asked("plain", "prefer-short").json()["credentials"][0].clone();
    assert_eq!((&credential["form"], credential.get("expires_at")), (&json!("raw"), None));

    let before = activation_listener.live(&token).len();
    let problem = assert_problem(&asked("plain", "short"), 409, "conflict", "without a role");
    assert!(problem.detail.contains(&plain) && problem.detail.contains("role_arn"), "{}", problem.detail);
    world.storage.refuse(plain.parse().unwrap(), CheckReason::Denied);
    assert_eq!(activation_listener.live(&token).len(), before, "nothing was issued");
}

#[test]
fn refusals_are_ordered_and_disclose_minimum() {
    let world = World::start();
    let admin = world.token(Role::Admin);
    for namespace in ["imports", "secret", "frozen", "secret-and-frozen"] {
        world.save(&admin, namespace, "b");
    }
    for _ in 0..101 {
        world.save(&admin, "large", "b");
    }
    world.freeze("frozen");
    world.freeze("secret-and-frozen");
    let (_, token) = world.integration(&admin, "nightly", &["imports", "empty", "frozen", "large"]);
    let activation_listener = world.activation_listener_with(|_, parts| {
        parts.activations = parts.activations.clone().live_limit(1);
    });
    let begin = |namespace: &str| activation_listener.activate(&token, namespace);
    let check = |namespace: &str| {
        activation_listener.send_json(
            "POST /v1/activations/check",
            &token,
            json!({"namespace": namespace, "operations": []}),
        )
    };
    let mut outside = Vec::new();
    for namespace in ["secret", "secret-and-frozen", "unheard-of", "imports/x", "Imports"] {
        for response in [begin(namespace), check(namespace)] {
            assert_problem(&response, 403, "namespace-not-allowed", namespace);
            assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""));
            outside.push((response.stable_headers(), response.text_without_id()));
        }
    }
    assert!(outside.windows(2).all(|pair| pair[0] == pair[1]), "{outside:?}");
    for response in [begin("empty"), check("empty")] {
        assert_problem(&response, 404, "not-found", "empty");
    }
    for response in [begin("frozen"), check("frozen")] {
        assert_problem(&response, 403, "frozen", "frozen");
    }
    for response in [begin("large"), check("large")] {
        assert_problem(&response, 409, "namespace-too-large", "large");
    }
    assert_eq!(begin("imports").status, 201);
    let response = begin("imports");
    assert_problem(&response, 429, "too-many-requests", "one live too many");
    assert_eq!(response.header("retry-after"), Some("60"));
    assert_eq!(check("imports").status, 200, "a dry run begins none");
    assert_problem(&begin("frozen"), 403, "frozen", "before the limit");
    assert_problem(&begin("large"), 409, "namespace-too-large", "before the limit");
    world.clock.advance_seconds(3_600);
    assert_eq!(begin("imports").status, 201, "the first has ended");
}

#[test]
fn dry_run_reports_every_credential() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    let id = world.save(&admin, "imports", "b");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let check = |body: Value| activation_listener.send_json("POST /v1/activations/check", &token, body);
    let response = check(json!({
        "namespace": "imports", "operations": ["write", "list", "list"], "until": "2030-01-01T06:00:00+01:00",
    }));
    assert_standard_headers(&response, "a dry run");
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(!response.text().contains("wJalrXUtnFEMI"));
    let checked: vault_api::CheckedNamespace = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((&*checked.namespace, checked.usable, checked.credentials.len()), ("imports", true, 1));
    let credential = &checked.credentials[0];
    assert_eq!((&*credential.id, &*credential.kind, credential.usable), (&*id, "s3", true));
    let passed: Vec<_> = credential.checks.iter().filter(|check| check.result == "passed").collect();
    let names: Vec<_> = passed.iter().map(|check| &*check.check).collect();
    assert!(names.windows(3).any(|names| names == ["authenticate", "list", "write"]), "{names:?}");
    assert!(passed.iter().all(|check| check.reason.is_none() && check.remedy.is_none()));
    assert_eq!(world.storage.probed()[0].until.map(vault_core::time::Timestamp::as_seconds), Some(1_893_474_000));
    assert!(activation_listener.live(&token).is_empty());

    world.storage.fail(Some(CheckReason::UnknownKey));
    let checked: vault_api::CheckedNamespace =
        serde_json::from_slice(&check(json!({"namespace": "imports", "operations": ["read"]})).body).unwrap();
    let credential = &checked.credentials[0];
    assert!(!checked.usable && !credential.usable);
    let reported = credential.checks.iter().map(|check| (&*check.check, &*check.result, check.reason.as_deref()));
    let reported: Vec<_> = reported.filter(|(check, ..)| *check != "settings").collect();
    let skipped = ("read", "skipped", Some("earlier-failed"));
    assert_eq!(reported, [("authenticate", "failed", Some("unknown-key")), skipped]);
    assert!(credential.checks.iter().all(|check| check.reason.is_some() == check.remedy.is_some()));
}

#[test]
fn integration_ends_its_own_activations_only() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "b");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let (_, neighbour) = world.integration(&admin, "hourly", &["imports"]);
    let id = activation_listener.activate(&token, "imports").json()["id"].as_str().unwrap().to_owned();
    let end = |token: &str, id: &str| activation_listener.send(&format!("DELETE /v1/activations/{id}"), &[token], "");
    let mut answers = Vec::new();
    for (token, id) in [
        (&neighbour, &*id),
        (&token, UNKNOWN),
        (&token, "00000000-0000-0000-0000-000000000000"),
        (&token, "x"),
        (&token, "%2e%2e"),
        (&token, &id.to_uppercase()),
    ] {
        let response = end(token, id);
        assert_problem(&response, 404, "not-found", id);
        answers.push((response.stable_headers(), response.text_without_id()));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    assert!(activation_listener.live(&neighbour).is_empty());
    assert_eq!(activation_listener.live(&token).len(), 1);
    assert_eq!(end(&token, &id).status, 204);
    assert_problem(&end(&token, &id), 404, "not-found", "again");
}

#[test]
fn unauthorized_integration_learns_nothing() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "b");
    let (id, first) = world.integration(&admin, "nightly", &["imports"]);
    let rotate = |overlap: i64| {
        let line = format!("POST /v1/integrations/{id}/rotate");
        let rotated = world.send_json(&line, &admin, json!({"overlap": overlap}));
        format!("Authorization: Bearer {}", rotated.json()["token"].as_str().unwrap())
    };
    let second = rotate(60);
    for token in [&first, &second] {
        assert_eq!(activation_listener.activate(token, "imports").status, 201, "within the overlap both work");
    }
    let third = rotate(0);
    let refused = |token: &str| {
        let response = activation_listener.activate(token, "imports");
        assert_problem(&response, 401, "invalid-token", "a token of before");
        assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
        (response.stable_headers(), response.text_without_id())
    };
    let replaced = refused(&second);
    assert_eq!(replaced, refused(&first));
    assert_eq!(activation_listener.live(&third).len(), 2, "activations are the integration's, not the token's");
    assert_eq!(world.send(&format!("DELETE /v1/integrations/{id}"), &[&admin], "").status, 204);
    assert_eq!(replaced, refused(&third));
    let body = json!({"name": "bounded", "namespaces": ["imports"], "expires_at": "2030-01-01T00:01:00Z"});
    let created = world.send_json("POST /v1/integrations", &admin, body).json();
    let bounded = format!("Authorization: Bearer {}", created["token"].as_str().unwrap());
    let started = activation_listener.activate(&bounded, "imports").json();
    assert_eq!(started["expires_at"], "2030-01-01T00:01:00Z", "no activation outlives its integration");
    world.clock.advance_seconds(60);
    assert_eq!(replaced, refused(&bounded));
}

#[test]
fn undecryptable_credential_issues_nothing() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "b");
    let damaged = world.save(&admin, "imports", "c");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    assert!(world.store.tamper_with_credential(damaged.parse().unwrap(), |sealed| {
        sealed.data = Blob::from_bytes(vec![1, 2, 3]);
    }));
    let response = activation_listener.activate(&token, "imports");
    assert_problem(&response, 500, "internal-error", "damage");
    assert!(!response.text().contains("AKIA") && !response.text().contains(&damaged));
    assert!(activation_listener.live(&token).is_empty());
    for line in
        ["POST /v1/activations", "POST /v1/activations/check", "GET /v1/activations", "DELETE /v1/activations/x"]
    {
        world.store.fail_next(StoreError::Unavailable("host db.internal refused".into()));
        let response = activation_listener.send_json(line, &token, json!({"namespace": "imports", "operations": []}));
        assert_problem(&response, 503, "unavailable", line);
        assert!(!response.text().contains("db.internal"));
    }
}

#[test]
fn whole_namespace_is_returned_in_one_response() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    let secret = "s".repeat(16_000);
    for _ in 0..100 {
        let mut body: Value = serde_json::from_str(&s3("imports", "b")).unwrap();
        body["data"]["secret_access_key"] = json!(secret);
        assert_eq!(world.send_json("PATCH /v1/organization-vault", &admin, body).status, 201);
    }
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let mut wire = activation_listener.wire();
    let headers = [&*token, "Content-Type: application/json"];
    for _ in 0..2 {
        let response =
            wire.exchange(crate::support::request("POST /v1/activations", &headers, "{\"namespace\":\"imports\"}"));
        assert_eq!(response.status, 201);
        let started: vault_api::BegunActivation = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(started.credentials.len(), 100);
        assert!(response.body.len() > 1_600_000);
    }
}

#[test]
fn integration_renews_its_own_activations_only() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "before");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let (_, neighbour) = world.integration(&admin, "hourly", &["imports"]);
    let started = activation_listener.activate(&token, "imports").json();
    let id = started["id"].as_str().unwrap();
    let renew = |token: &str, id: &str, body: Value| {
        activation_listener.send_json(&format!("POST /v1/activations/{id}/renew"), token, &body)
    };
    for (token, id) in [(&neighbour, id), (&token, UNKNOWN), (&token, "x"), (&token, "%2e%2e")] {
        assert_problem(&renew(token, id, json!({})), 404, "not-found", id);
    }
    assert_problem(&renew(&token, id, json!({"ttl": 59})), 422, "refused-value", "ttl");
    assert_problem(&renew(&token, id, json!({"namespace": "imports"})), 400, "malformed-request", "namespace");

    let response = renew(&token, id, json!({"ttl": 120}));
    assert_standard_headers(&response, "a renewal");
    assert_eq!(response.status, 200);
    let renewed = response.json();
    assert_eq!((&renewed["id"], &renewed["credentials"]), (&started["id"], &started["credentials"]));
    let live = activation_listener.live(&token);
    assert_eq!((live.len(), &live[0]["expires_at"]), (1, &renewed["expires_at"]));
    assert_ne!(renewed["expires_at"], started["expires_at"]);
}
