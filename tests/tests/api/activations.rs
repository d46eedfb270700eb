//! Activations: issued credentials, refusals, and the rules for every request to the activation listener.

use super::app::{App, JSON, Job, Listener, NOW, UNKNOWN, assert_same, integrate, s3, s3_with_role, text, texts};
use super::log::logged;
use super::tokens::line;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use vault_core::check::CheckReason;
use vault_core::organization::OrganizationState;
use vault_core::port::StoreError;
use vault_core::sealed::Blob;
use vault_http::{Access, Rate, Readiness, Route, activation_routes, routes};
use vault_tests::samples::every_type;
use vault_tests::wire::{Wire, request};
use vault_tests::{Answer, Session};

/// An app with a credential in `imports`, and an integration for it.
fn open() -> (App, Session, Listener, Job) {
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    admin.save(&s3("imports", "b"));
    let job = listener.job(&admin, "nightly", &["imports"]);
    (app, admin, listener, job)
}

#[test]
fn activation_issues_credentials_of_namespace() {
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    let first = admin.save(&s3("imports/nightly", "b1"));
    let second = admin.save(&s3_with_role("imports/nightly", "b2"));
    admin.save(&s3("imports", "elsewhere"));
    app.stranger().save(&s3("imports/nightly", "theirs"));
    let job = listener.job(&admin, "nightly", &["imports/*"]);
    let body = json!({"namespace": "imports/nightly", "purpose": "the nightly import", "ttl": 600});
    let answer = job.activate_with(&body).expect(201);
    let started = answer.json();
    let id = text(&started["id"]);
    let item =
        |id: &str, save: &Value| json!({"id": id, "type": "s3", "version": 1, "form": "raw", "data": save["data"]});
    assert_eq!(
        started,
        json!({
            "id": id, "namespace": "imports/nightly", "expires_at": "2030-01-01T00:10:00Z",
            "credentials": [item(&first, &s3("", "b1")), item(&second, &s3_with_role("", "b2"))],
        })
    );
    let read: vault_api::BegunActivation = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(read.credentials.len(), 2);
    let expected = json!({
        "id": id, "namespace": "imports/nightly", "vend": "raw", "credential_count": 2, "started_at": NOW,
        "expires_at": "2030-01-01T00:10:00Z",
    });
    assert_eq!(job.live(), [expected]);
    job.end(id).empty(204);
    assert!(job.live().is_empty());
}

#[test]
fn saved_data_is_returned_only_by_activation_listener() {
    let app = App::start();
    let admin = app.admin();
    let job = app.listener().job(&admin, "nightly", &["imports"]);
    let samples = every_type();
    for sample in &samples {
        let mut save = sample.request.clone();
        save["namespace"] = json!("imports");
        let id = admin.save(&save);
        for path in ["", "/versions"] {
            let shown = admin.get(&format!("/organization-vault/{id}{path}")).text();
            assert!(sample.secrets.iter().all(|secret| !shown.contains(secret)), "{shown}");
        }
    }
    let opened = job.activate("imports").expect(201).json();
    let opened = opened["credentials"].as_array().unwrap();
    assert_eq!(opened.len(), samples.len());
    for (sample, opened) in samples.iter().zip(opened) {
        assert_eq!((&opened["type"], &opened["form"]), (&sample.request["type"], &json!("raw")), "oldest first");
        // A key file is an object, saved as an object or as a string.
        let [saved, data] = [&sample.request["data"], &opened["data"]].map(|data| {
            let mut data = data.clone();
            if let Some(text) = data["service_account_key"].as_str() {
                data["service_account_key"] = serde_json::from_str(text).unwrap();
            }
            data
        });
        assert_eq!(data, saved);
    }
}

#[test]
fn requested_form_is_issued_or_nothing() {
    let app = App::start();
    let admin = app.admin();
    admin.save(&s3_with_role("role", "b"));
    let plain = admin.save(&s3("plain", "b"));
    let job = app.listener().job(&admin, "nightly", &["role", "plain"]);
    let asked = |namespace: &str, vend: &str| job.activate_with(&json!({"namespace": namespace, "vend": vend}));
    for vend in ["short", "prefer-short"] {
        let answer = asked("role", vend).expect(201);
        let started = answer.json();
        let credential = &started["credentials"][0];
        assert_eq!((&credential["form"], &credential["expires_at"]), (&json!("short"), &started["expires_at"]));
        assert_eq!(started["expires_at"], "2030-01-01T01:00:00Z", "an hour where nothing is asked for");
        assert_eq!(credential["data"]["session_token"], "short-lived token");
        assert!(!answer.text().contains("wJalrXUtnFEMI"), "the long-lived secret is not in it");
    }
    let credential = asked("plain", "prefer-short").json()["credentials"][0].clone();
    assert_eq!((&credential["form"], credential.get("expires_at")), (&json!("raw"), None));
    let before = job.live().len();
    let refused = asked("plain", "short").problem("conflict").text();
    assert!(refused.contains(&plain) && refused.contains("role_arn"), "{refused}");
    app.storage.refuse(plain.parse().unwrap(), CheckReason::Denied);
    assert_eq!(job.live().len(), before, "nothing was issued");
}

#[test]
fn refusals_are_ordered_and_disclose_minimum() {
    let app = App::start();
    let admin = app.admin();
    for namespace in ["imports", "imports/a", "secret", "frozen", "secret-and-frozen"] {
        admin.save(&s3(namespace, "b"));
    }
    for _ in 0..101 {
        admin.save(&s3("large", "b"));
    }
    for namespace in ["frozen", "secret-and-frozen"] {
        admin.post("/namespaces/freeze", &json!({"namespace": namespace})).expect(200);
    }
    let listener = app.listener_with(|_, parts| parts.activations = parts.activations.clone().live_limit(1));
    let job = listener.job(&admin, "nightly", &["imports", "empty", "frozen", "large"]);
    let both = |namespace: &str| [job.activate(namespace), job.check(namespace, &[])];
    let outside = ["secret", "secret-and-frozen", "unheard-of", "imports/a", "imports/", "Imports", "imports.a"];
    assert_same(outside.into_iter().flat_map(both).map(|answer| {
        let answer = answer.problem("namespace-not-allowed");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""));
        answer
    }));
    for (namespace, code) in [("empty", "not-found"), ("frozen", "frozen"), ("large", "namespace-too-large")] {
        for answer in both(namespace) {
            answer.problem(code);
        }
    }
    job.activate("imports").expect(201);
    assert_eq!(job.activate("imports").problem("too-many-requests").header("retry-after"), Some("60"));
    job.check("imports", &[]).expect(200); // a dry run begins none
    job.activate("frozen").problem("frozen"); // before the limit
    job.activate("large").problem("namespace-too-large");
    app.clock.advance_seconds(3_600);
    job.activate("imports").expect(201); // the first has ended
    // A prefix covers the namespaces below it, in their one spelling.
    let admin = app.admin();
    let below = app.listener().job(&admin, "below", &["imports/*"]);
    below.activate("imports/a").expect(201);
    below.activate("imports").problem("namespace-not-allowed");
    for other in ["imports/A", "imports/a/", "imports//a", "imports/./a", "imports/../b", "imports/.."] {
        below.activate(other).problem("not-found");
    }
    // Every decision is recorded.
    app.seal_audit();
    let entries = admin.get("/audit?actor=integration").expect(200).json();
    let actions = texts(entries.as_array().unwrap(), "action");
    for action in ["namespace.activated", "activation.refused-outside", "activation.refused-frozen"] {
        assert!(actions.iter().any(|found| found == action), "{action}: {actions:?}");
    }
}

#[test]
fn dry_run_reports_every_credential() {
    let (app, admin, _listener, job) = open();
    let id = admin.ids().remove(0);
    let body =
        json!({"namespace": "imports", "operations": ["write", "list", "list"], "until": "2030-01-01T06:00:00+01:00"});
    let answer = job.call("POST", "/check").json(&body).send().expect(200);
    assert!(!answer.text().contains("wJalrXUtnFEMI"));
    let read = |answer: &Answer| serde_json::from_slice::<vault_api::CheckedNamespace>(&answer.body).unwrap();
    let checked = read(&answer);
    assert_eq!((&*checked.namespace, checked.usable, checked.credentials.len()), ("imports", true, 1));
    let credential = &checked.credentials[0];
    assert_eq!((&*credential.id, &*credential.kind, credential.usable), (&*id, "s3", true));
    let passed: Vec<_> = credential.checks.iter().filter(|check| check.result == "passed").collect();
    let names: Vec<_> = passed.iter().map(|check| &*check.check).collect();
    assert!(names.windows(3).any(|names| names == ["authenticate", "list", "write"]), "{names:?}");
    assert!(passed.iter().all(|check| check.reason.is_none() && check.remedy.is_none()));
    assert_eq!(app.storage.probed()[0].until.map(vault_core::time::Timestamp::as_seconds), Some(1_893_474_000));
    assert!(job.live().is_empty());

    app.storage.fail(Some(CheckReason::UnknownKey));
    let checked = read(&job.check("imports", &["read"]));
    let credential = &checked.credentials[0];
    assert!(!checked.usable && !credential.usable);
    let reported = credential.checks.iter().map(|check| (&*check.check, &*check.result, check.reason.as_deref()));
    let reported: Vec<_> = reported.filter(|(check, ..)| *check != "settings").collect();
    let skipped = ("read", "skipped", Some("earlier-failed"));
    assert_eq!(reported, [("authenticate", "failed", Some("unknown-key")), skipped]);
    assert!(credential.checks.iter().all(|check| check.reason.is_some() == check.remedy.is_some()));
}

#[test]
fn integration_renews_and_ends_its_own_activations_only() {
    let (_app, admin, listener, job) = open();
    let neighbour = listener.job(&admin, "hourly", &["imports"]);
    let started = job.activate("imports").json();
    let id = text(&started["id"]);
    let upper = id.to_uppercase();
    let foreign = [
        (&neighbour, id),
        (&job, UNKNOWN),
        (&job, "00000000-0000-0000-0000-000000000000"),
        (&job, "x"),
        (&job, &upper),
    ];
    assert_same(foreign.map(|(job, id)| job.end(id).problem("not-found")));
    assert_same(foreign.map(|(job, id)| job.renew(id, &json!({})).problem("not-found")));
    job.renew("%2e%2e", &json!({})).problem("not-found");
    assert!(neighbour.live().is_empty());
    let renewed = job.renew(id, &json!({"ttl": 120})).expect(200).json();
    assert_eq!((&renewed["id"], &renewed["credentials"]), (&started["id"], &started["credentials"]));
    let live = job.live();
    assert_eq!((live.len(), &live[0]["expires_at"]), (1, &renewed["expires_at"]));
    assert_ne!(renewed["expires_at"], started["expires_at"]);
    job.end(id).empty(204);
    job.end(id).problem("not-found");
}

#[test]
fn unauthorized_integration_learns_nothing() {
    let (app, admin, listener, first) = open();
    let rotate = |overlap: i64| {
        let rotated = admin.post(&format!("/integrations/{}/rotate", first.id), &json!({"overlap": overlap}));
        listener.job_of(&rotated.expect(200).json())
    };
    let second = rotate(60);
    for job in [&first, &second] {
        job.activate("imports").expect(201); // within the overlap both work
    }
    let third = rotate(0);
    let mut refused = vec![first.activate("imports"), second.activate("imports")];
    assert_eq!(third.live().len(), 2, "activations are the integration's, not the token's");
    app.set_organization_state("Acme", OrganizationState::Disabled);
    refused.push(third.activate("imports"));
    app.set_organization_state("Acme", OrganizationState::Active);
    third.activate("imports").expect(201);
    let admin = app.admin();
    admin.remove(&format!("/integrations/{}", first.id)).empty(204);
    refused.push(third.activate("imports"));
    let body = json!({"name": "bounded", "namespaces": ["imports"], "expires_at": "2030-01-01T00:01:00Z"});
    let bounded = listener.job_of(&admin.post("/integrations", &body).expect(201).json());
    let started = bounded.activate("imports").json();
    assert_eq!(started["expires_at"], "2030-01-01T00:01:00Z", "no activation outlives its integration");
    app.clock.advance_seconds(60);
    refused.push(bounded.activate("imports"));
    assert_eq!(refused[0].header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    assert_same(refused.into_iter().map(|answer| answer.problem("invalid-token")));
}

#[test]
fn undecryptable_credential_issues_nothing() {
    let (app, admin, _listener, job) = open();
    let damaged = admin.save(&s3("imports", "c"));
    assert!(app.store.tamper_with_data(damaged.parse().unwrap(), |sealed| {
        sealed.data = Blob::from_bytes(vec![1, 2, 3]);
    }));
    let answer = job.activate("imports").problem("internal-error");
    assert!(!answer.text().contains("AKIA") && !answer.text().contains(&damaged));
    assert!(job.live().is_empty());
    let acts: [&dyn Fn() -> Answer; 4] =
        [&|| job.activate("imports"), &|| job.check("imports", &[]), &|| job.call("GET", "").send(), &|| job.end("x")];
    for act in acts {
        app.store.fail_next(StoreError::Unavailable("host db.internal refused".into()));
        assert!(!act().problem("unavailable").text().contains("db.internal"));
    }
}

#[test]
fn whole_namespace_is_returned_in_one_response() {
    let app = App::start();
    let admin = app.admin();
    let mut body = s3("imports", "b");
    body["data"]["secret_access_key"] = json!("s".repeat(16_000));
    for _ in 0..100 {
        admin.save(&body);
    }
    let job = app.listener().job(&admin, "nightly", &["imports"]);
    for _ in 0..2 {
        let answer = job.activate("imports").expect(201);
        let started: vault_api::BegunActivation = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(started.credentials.len(), 100);
        assert!(answer.body.len() > 1_600_000);
    }
}

/// Every route that requires a token.
fn protected() -> Vec<Route> {
    let routes: Vec<_> = activation_routes().filter(|route| !matches!(route.operation, "live" | "ready")).collect();
    assert_eq!(routes.len(), 5);
    routes
}

#[test]
fn listeners_share_only_probes() {
    let app = App::start();
    let listener = app.listener();
    for route in routes().filter(|route| !matches!(route.operation, "live" | "ready")) {
        listener.send(&line(&route, "x"), &[], "").problem("not-found");
    }
    for route in activation_routes() {
        let (line, probe) = (line(&route, "x"), matches!(route.operation, "live" | "ready"));
        assert_eq!(app.send(&line, &[], "").status, if probe { 200 } else { 404 }, "{line} on the public listener");
        assert_eq!(listener.send(&line, &[], "").status, if probe { 200 } else { 401 }, "{line}");
        assert!(matches!(route.access, Access::Probe | Access::Integration { .. }));
    }
}

#[test]
fn token_is_checked_before_rest_of_request() {
    let (app, admin, listener, job) = open();
    let token = &job.token;
    let changed = format!("{}{}", &token[..52], if token.ends_with('0') { "1" } else { "0" });
    let refused = |line: &str, headers: &[&str], challenge: &str| {
        let answer = listener.send(line, &[&["Content-Type: text/plain"], headers].concat(), "{");
        assert_eq!(answer.problem("invalid-token").header("www-authenticate"), Some(challenge), "{line} {headers:?}");
    };
    for line in protected().iter().map(|route| line(route, "x")) {
        let line = format!("{line}?access_token={token}");
        refused(&line, &[], "Bearer");
        for (name, value) in [
            ("Cookie", &format!("access_token={token}")),
            ("Authorization", &format!("Basic {token}")),
            ("X-Api-Key", token),
            ("Proxy-Authorization", &format!("Bearer {token}")),
        ] {
            refused(&line, &[&format!("{name}: {value}")], "Bearer");
        }
        for value in [
            admin.token.clone(),
            changed.clone(),
            token.to_lowercase(),
            token[4..].to_owned(),
            format!("ovi_{}", "a".repeat(49)),
            format!("{token}a"),
            format!(" {token}"),
            format!("\t{token}"),
            format!("{token}, Bearer {token}"),
            format!("\"{token}\""),
        ] {
            refused(&line, &[&format!("Authorization: Bearer {value}")], "Bearer error=\"invalid_token\"");
        }
        refused(&line, &[&job.header(), &job.header()], "Bearer error=\"invalid_token\"");
    }
    for scheme in ["bearer", "BEARER"] {
        listener.send("GET /v1/activations", &[&format!("authorization: {scheme} {token}")], "").expect(200);
    }
    let mut wire = Wire::connect(listener.address());
    let answer = wire.exchange(request("POST /v1/activations", &[JSON], "{}"));
    assert_eq!((answer.status, answer.header("connection")), (401, Some("close")), "the body is not read");
    assert!(wire.is_closed());
    app.send("GET /v1/organization-vault", &[&job.header()], "").problem("invalid-token");
}

#[test]
fn methods_headers_and_paths_are_checked_as_on_main_listener() {
    let (app, _admin, listener, job) = open();
    super::methods::assert_methods_are_checked(activation_routes(), listener.address());
    for path in ["/livez", "/readyz", "/v1/activations", "/v1/activations?a"] {
        let [get, head] =
            ["GET", "HEAD"].map(|method| listener.send(&format!("{method} {path}"), &[&job.header()], ""));
        let [(status, headers, body), (same, others, none)] = [get.indistinct(), head.indistinct()];
        assert_eq!((status, headers), (same, others), "{path}");
        assert!(!body.is_empty() && none.is_empty(), "{path}");
    }
    for line in
        ["GET /", "GET /v1", "POST /v1/activations/", "GET /metrics", "POST /v1/Activations", "GET /v1//activations"]
    {
        listener.send(line, &[&job.header()], "").problem("not-found");
    }
    let unready = app.listener_with(|settings, parts| {
        settings.base_path = "/batch/v9".parse().expect("a base path");
        parts.readiness = Readiness::new(|| std::future::ready(Err("no space left on device".to_owned())));
    });
    unready.send("GET /batch/v9/activations", &[&job.header()], "").expect(200);
    unready.send("GET /v1/activations", &[&job.header()], "").problem("not-found");
    unready.send("GET /readyz", &[], "").problem("unavailable");
}

#[test]
fn integration_is_rate_limited() {
    let (app, admin, _listener, _) = open();
    let listener = app.listener_with(|settings, _| {
        let rate = NonZeroU32::new(1).zip(NonZeroU32::new(3));
        settings.rate = rate.map(|(per_second, burst)| Rate { per_second, burst });
    });
    let [busy, neighbour] = ["busy", "hourly"].map(|name| listener.job_of(&integrate(&admin, name, &["imports"])));
    // Far more than a rate of one per second permits in this time.
    let mut answers =
        (0..200).map(|turn| if turn % 2 == 0 { busy.activate("imports") } else { busy.check("imports", &[]) });
    let refused = answers.find(|answer| answer.status == 429).expect("a refusal");
    assert_eq!(refused.problem("too-many-requests").header("retry-after"), Some("1"));
    neighbour.activate("imports").expect(201);
    for _ in 0..40 {
        busy.live(); // not limited, because it opens nothing
    }
}

#[test]
fn secrets_are_not_logged() {
    let log = logged();
    let app = App::start();
    let (admin, listener) = (app.admin(), app.listener());
    admin.save(&s3_with_role("imports", "b"));
    let job = listener.job(&admin, "nightly", &["imports"]);
    let rotated = admin.post(&format!("/integrations/{}/rotate", job.id), &json!({})).json();
    let changed = listener.job_of(&json!({"id": job.id, "token": format!("{}a", job.token)}));
    for vend in ["raw", "short"] {
        for (job, status) in [(&job, 201), (&changed, 401)] {
            job.activate_with(&json!({"namespace": "imports", "vend": vend, "purpose": "a purpose of its own"}))
                .expect(status);
        }
    }
    job.activate("another-namespace").expect(403);
    let logged = log.lock().unwrap();
    assert!(logged.contains("activate") && logged.contains("integration token refused"), "{logged}");
    for secret in [
        &*job.token,
        &job.token[4..20],
        text(&rotated["token"]),
        "wJalrXUtnFEMI",
        "AKIA2TESTONLY7SAMPLE",
        "ASIASHORTLIVED",
        "short-lived secret",
        "short-lived token",
        "a purpose of its own",
        "another-namespace",
    ] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
}
