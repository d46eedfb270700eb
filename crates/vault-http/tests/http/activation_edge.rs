//! The edge of the activation listener: rules for every request to it.

use crate::support::{World, assert_problem, assert_standard_headers, logged, request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use vault_core::role::Role;
use vault_http::{Access, Rate, Readiness, activation_routes, routes};

const JSON: &str = "Content-Type: application/json";

/// Every route that requires a token.
fn protected() -> Vec<String> {
    let routes = activation_routes().filter(|route| !matches!(route.operation, "live" | "ready"));
    let lines: Vec<_> = routes.map(|route| format!("{} {}", route.method, route.template)).collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    lines.iter().map(|line| line.replace("{base}", "/v1").replace("{id}", "x")).collect()
}

#[test]
fn listeners_share_only_probes() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let path = |template: &str| template.replace("{base}", "/v1").replace("{id}", "x");
    for route in routes().filter(|route| !matches!(route.operation, "live" | "ready")) {
        let response = activation_listener.send(&format!("{} {}", route.method, path(route.template)), &[], "");
        assert_problem(&response, 404, "not-found", route.template);
    }
    for route in activation_routes() {
        let line = format!("{} {}", route.method, path(route.template));
        let found = world.send(&line, &[], "").status;
        let probe = matches!(route.operation, "live" | "ready");
        assert_eq!(found, if probe { 200 } else { 404 }, "{line} on the public listener");
        assert_eq!(activation_listener.send(&line, &[], "").status, if probe { 200 } else { 401 }, "{line}");
        assert!(matches!(route.access, Access::Probe | Access::Integration { .. }));
    }
}

#[test]
fn token_is_checked_before_rest_of_request() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let spelt = token.rsplit(' ').next().unwrap();
    let changed = format!("{}{}", &spelt[..52], if spelt.ends_with('0') { "1" } else { "0" });
    let plain = |token: &str| format!("Authorization: Bearer {token}");
    for line in &protected() {
        for headers in [&[][..], &["Cookie: access_token=a"], &["Authorization: Basic YTpi"], &["X-Api-Key: a"]] {
            let response = activation_listener.send(&format!("{line}?a=b"), headers, "");
            assert_problem(&response, 401, "invalid-token", line);
            assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{line} {headers:?}");
        }
        for header in [
            &*admin,
            &plain(&changed),
            &plain(&spelt.to_lowercase()),
            &plain(&spelt[4..]),
            &plain(&format!("ovi_{}", "a".repeat(49))),
            &plain(&format!("{spelt}a")),
            &format!("Authorization: Bearer  {spelt}"),
        ] {
            let response = activation_listener.send(&format!("{line}?a=b"), &[header, "Content-Type: text/plain"], "{");
            assert_problem(&response, 401, "invalid-token", line);
            assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{line} {header}");
        }
        let response = activation_listener.send(line, &[&token, &token], "");
        assert_problem(&response, 401, "invalid-token", "two headers");
    }
    let mut wire = activation_listener.wire();
    let response = wire.exchange(request("POST /v1/activations", &[JSON], "{}"));
    assert_eq!((response.status, response.header("connection")), (401, Some("close")), "the body is not read");
    assert!(wire.is_closed());
    let refused = world.send("GET /v1/organization-vault", &[&token], "");
    assert_problem(&refused, 401, "invalid-token", "an integration token on the public listener");
}

#[test]
fn bodies_are_validated_and_violations_named() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "b");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let begin: &[(Value, u16, &[&str])] = &[
        (json!([]), 400, &[""]),
        (json!({}), 400, &["/namespace"]),
        (json!({"namespace": 1}), 400, &["/namespace"]),
        (json!({"namespace": "imports", "ttl": "600"}), 400, &["/ttl"]),
        (json!({"namespace": "imports", "ttl": 1.5}), 400, &["/ttl"]),
        (json!({"namespace": "imports", "vend": null}), 400, &["/vend"]),
        (json!({"namespace": "imports", "data": {}}), 400, &["/data"]),
        (json!({"namespace": "", "ttl": 1, "vend": "RAW", "purpose": 1}), 400, &["/purpose"]),
        (json!({"namespace": ".."}), 422, &["/namespace"]),
        (json!({"namespace": "imports/*"}), 422, &["/namespace"]),
        (json!({"namespace": "imports", "ttl": 59}), 422, &["/ttl"]),
        (json!({"namespace": "imports", "ttl": 43_201}), 422, &["/ttl"]),
        (json!({"namespace": "imports", "vend": "long"}), 422, &["/vend"]),
        (json!({"namespace": "imports", "purpose": ""}), 422, &["/purpose"]),
        (json!({"namespace": "imports", "purpose": "p".repeat(201)}), 422, &["/purpose"]),
        (json!({"namespace": "imports", "purpose": "a\nb"}), 422, &["/purpose"]),
    ];
    let check: &[(Value, u16, &[&str])] = &[
        (json!({}), 400, &["/namespace"]),
        (json!({"namespace": "imports", "operations": "list"}), 400, &["/operations"]),
        (json!({"namespace": "imports", "operations": ["list", 1]}), 400, &["/operations/1"]),
        (json!({"namespace": "imports", "operations": [], "until": 1}), 400, &["/until"]),
        (json!({"namespace": "imports", "operations": [], "ttl": 60}), 400, &["/ttl"]),
        (
            json!({"namespace": "imports", "operations": ["delete", "list", "Read"]}),
            422,
            &["/operations/0", "/operations/2"],
        ),
        (json!({"namespace": "imports", "operations": [], "until": "tomorrow"}), 422, &["/until"]),
    ];
    for (line, cases) in [("POST /v1/activations", begin), ("POST /v1/activations/check", check)] {
        for (body, status, pointers) in cases {
            let code = if *status == 400 { "malformed-request" } else { "refused-value" };
            let problem =
                assert_problem(&activation_listener.send_json(line, &token, body), *status, code, &body.to_string());
            let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
            found.sort_unstable();
            assert_eq!(&found, pointers, "{line} {body}");
        }
        for (headers, query, body, status, code) in [
            (&[&*token][..], "", "{}", 415, "unsupported-media-type"),
            (&[&token, "Content-Type: text/plain"], "", "{}", 415, "unsupported-media-type"),
            (&[&token, JSON, "Content-Encoding: gzip"], "", "{}", 415, "unsupported-media-type"),
            (&[&token, JSON], "?namespace=imports", "{}", 400, "malformed-request"),
            (&[&token, JSON], "", "{", 400, "malformed-request"),
            (&[&token, JSON], "", &" ".repeat(64 * 1024 + 1), 413, "too-large"),
        ] {
            assert_problem(&activation_listener.send(&format!("{line}{query}"), headers, body), status, code, line);
        }
        let twice = r#"{"namespace":"imports","operations":[],"namespace":"imports"}"#;
        assert_problem(&activation_listener.send_json(line, &token, twice), 400, "malformed-request", twice);
    }
    assert_problem(
        &activation_listener.send("GET /v1/activations?namespace=a", &[&token], ""),
        400,
        "malformed-request",
        "a query",
    );
    let precondition = activation_listener.send("DELETE /v1/activations/x", &[&token, "If-Match: \"a\""], "");
    assert_problem(&precondition, 412, "precondition-failed", "an end");
    assert!(activation_listener.live(&token).is_empty(), "nothing was activated");
}

#[test]
fn methods_headers_and_paths_are_checked_as_on_main_listener() {
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for route in activation_routes() {
        let path = route.template.replace("{base}", "/v1").replace("{id}", "x");
        let methods = places.entry(path).or_default();
        methods.extend([route.method].into_iter().chain((route.method == "GET").then_some("HEAD")));
    }
    for (path, allow) in places {
        for method in ["TRACE", "PROPFIND", "get", "PUT", "OPTIONS", "POST", "PATCH", "DELETE", "GET"] {
            if allow.contains(&method) {
                continue;
            }
            let response = activation_listener.send(&format!("{method} {path}"), &[&token], "");
            assert_problem(&response, 405, "method-not-allowed", method);
            assert_eq!(response.header("allow"), Some(&*allow.join(", ")), "{method} {path}");
        }
    }
    for path in ["/livez", "/readyz", "/v1/activations", "/v1/activations?a"] {
        let get = activation_listener.send(&format!("GET {path}"), &[&token], "");
        let head = activation_listener.send(&format!("HEAD {path}"), &[&token], "");
        assert_standard_headers(&get, path);
        assert_eq!((get.status, get.stable_headers()), (head.status, head.stable_headers()), "{path}");
        assert!(!get.body.is_empty() && head.body.is_empty(), "{path}");
    }
    for line in
        ["GET /", "GET /v1", "POST /v1/activations/", "GET /metrics", "POST /v1/Activations", "GET /v1//activations"]
    {
        assert_problem(&activation_listener.send(line, &[&token], ""), 404, "not-found", line);
    }
    let activation_listener = world.activation_listener_with(|settings, parts| {
        settings.base_path = "/batch/v9".parse().expect("a base path");
        parts.readiness = Readiness::new(|| std::future::ready(Err("no space left on device".to_owned())));
    });
    assert_eq!(activation_listener.send("GET /batch/v9/activations", &[&token], "").status, 200);
    assert_problem(&activation_listener.send("GET /v1/activations", &[&token], ""), 404, "not-found", "below another");
    assert_problem(&activation_listener.send("GET /readyz", &[], ""), 503, "unavailable", "not ready");
}

#[test]
fn integration_is_rate_limited() {
    let world = World::start();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "b");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let (_, neighbour) = world.integration(&admin, "hourly", &["imports"]);
    let activation_listener = world.activation_listener_with(|settings, _| {
        settings.rate =
            NonZeroU32::new(1).zip(NonZeroU32::new(3)).map(|(per_second, burst)| Rate { per_second, burst });
    });
    let check = || {
        activation_listener.send_json(
            "POST /v1/activations/check",
            &token,
            r#"{"namespace":"imports","operations":[]}"#,
        )
    };
    // Far more than a rate of one per second permits in this time.
    let answers =
        (0..200).map(|turn| if turn % 2 == 0 { activation_listener.activate(&token, "imports") } else { check() });
    let refused = { answers }.find(|response| response.status == 429).expect("a refusal");
    assert_problem(&refused, 429, "too-many-requests", "too often");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(activation_listener.activate(&neighbour, "imports").status, 201, "another integration");
    for _ in 0..40 {
        assert_eq!(
            activation_listener.send("GET /v1/activations", &[&token], "").status,
            200,
            "what opens nothing is not limited"
        );
    }
}

#[test]
fn secrets_are_not_logged() {
    let log = logged();
    let world = World::start();
    let activation_listener = world.activation_listener();
    let admin = world.token(Role::Admin);
    world.save_role(&admin, "imports", "b");
    let (id, token) = world.integration(&admin, "nightly", &["imports"]);
    let rotated = world.send_json(&format!("POST /v1/integrations/{id}/rotate"), &admin, "{}").json();
    let changed = format!("{token}a");
    for vend in ["raw", "short"] {
        for (token, status) in [(&token, 201), (&changed, 401)] {
            let body = json!({"namespace": "imports", "vend": vend, "purpose": "a purpose of its own"});
            assert_eq!(activation_listener.send_json("POST /v1/activations", token, body).status, status);
        }
    }
    assert_eq!(activation_listener.activate(&token, "another-namespace").status, 403);
    let logged = log.lock().unwrap();
    assert!(logged.contains("activate") && logged.contains("integration token refused"), "{logged}");
    let spelt = token.rsplit(' ').next().unwrap();
    for secret in [
        spelt,
        &spelt[4..20],
        rotated["token"].as_str().unwrap(),
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
