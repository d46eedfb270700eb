//! `POST {base_url}/login`

use crate::support::{PASSWORD, World, WorldBuilder, assert_problem, assert_standard_headers};
use serde_json::{Value, json};
use vault_core::digest::DigestPurpose;
use vault_core::hash_slots::Requester;
use vault_core::network::Network;
use vault_core::port::KeyedDigester as _;
use vault_core::role::Role;
use vault_testkit::crypto::FakeDigester;

const JSON: &str = "Content-Type: application/json";

fn login(world: &World, body: &Value) -> crate::support::Response {
    world.send("POST /v1/login", &[JSON], body.to_string())
}

#[test]
fn login_returns_token() {
    let world = World::start();
    world.account("Acme", "a@acme.example", Role::Admin);
    let response = world.send("POST /v1/login", &[JSON], world.login_body("a@acme.example"));
    assert_standard_headers(&response, "login");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    let body = response.json();
    let names: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["access_token", "expires_at", "expires_in", "token_type"]);
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("Bearer"), &json!(3600)));
    assert_eq!(body["expires_at"], "2030-01-01T01:00:00Z");
    let mut body = serde_json::from_str::<Value>(&world.login_body("a@acme.example")).unwrap();
    body["ttl"] = json!(60);
    assert_eq!(login(&world, &body).json()["expires_in"], 60);
}

#[test]
fn wrong_credentials_get_same_response() {
    let world = World::start();
    world.account("Acme", "a@acme.example", Role::Admin);
    let right = || json!({"email": "a@acme.example", "password": PASSWORD, "passcode": world.code("a@acme.example")});
    let mut answers = Vec::new();
    for (member, value) in [
        ("email", "b@acme.example".to_owned()),
        ("email", "not an address".to_owned()),
        ("email", String::new()),
        ("email", "a\u{0}@acme.example".to_owned()),
        ("password", "wrong".to_owned()),
        ("password", String::new()),
        ("password", "x".repeat(1_025)),
        ("passcode", "000000".to_owned()),
        ("passcode", String::new()),
        ("passcode", " 123456".to_owned()),
    ] {
        let mut body = right();
        body[member] = json!(value);
        let response = login(&world, &body);
        let problem = assert_problem(&response, 401, "invalid-login", member);
        assert!(problem.errors.is_empty());
        assert_eq!(response.header("www-authenticate"), Some("Bearer"), "no `error=`: no token was sent");
        answers.push((response.stable_headers(), response.text_without_id()));
        world.clock.advance_seconds(86_400); // lockouts have expired
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
}

#[test]
fn only_form_and_lifetime_are_refused_by_name() {
    let world = World::start();
    for (body, status, pointers) in [
        (json!([]), 400, &[""][..]),
        (json!({}), 400, &["/email", "/passcode", "/password"]),
        (json!({"email": "a", "password": "b", "passcode": null}), 400, &["/passcode"]),
        (json!({"email": "a", "password": "b", "passcode": false}), 400, &["/passcode"]),
        (json!({"email": "a", "password": "b", "passcode": "c", "role": "admin"}), 400, &["/role"]),
        (json!({"email": "a", "password": "b", "passcode": "c", "ttl": 59}), 422, &["/ttl"]),
        (json!({"email": "a", "password": "b", "passcode": "c", "ttl": 86_401}), 422, &["/ttl"]),
        (json!({"email": 1, "password": "b", "passcode": "c", "ttl": 0}), 400, &["/email", "/ttl"]),
        (json!({"email": "a", "password": "b", "passcode": "c", "ttl": "60"}), 400, &["/ttl"]),
    ] {
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let problem = assert_problem(&login(&world, &body), status, code, &body.to_string());
        let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{body}");
    }
    let response = world.send("POST /v1/login?access_token=x", &[JSON], "{}");
    assert_problem(&response, 400, "malformed-request", "a query");
}

#[test]
fn overload_response_has_retry_after() {
    let world = WorldBuilder::default().hash_permits(0).start();
    let response = login(&world, &json!({"email": "a@x.io", "password": "b", "passcode": "c"}));
    assert_problem(&response, 503, "unavailable", "busy");
    assert_eq!(response.header("retry-after"), Some("1"));
}

#[test]
fn network_is_that_of_peer_unless_proxy_is_trusted() {
    for (trusted, address) in [(None, [127, 0, 0, 1]), (Some("127.0.0.0/8"), [198, 51, 100, 7])] {
        let expected = Network::of(address.into());
        let expected = FakeDigester::default().digest(DigestPurpose::Network, &[expected.as_bytes()]);
        let world = WorldBuilder::default()
            .settings(move |settings| {
                settings.listener.trusted_proxies = trusted.map(|net| net.parse().unwrap()).into_iter().collect();
            })
            .start();
        let headers = [
            JSON,
            "X-Forwarded-For: 203.0.113.1, 198.51.100.7",
            "Forwarded: for=203.0.113.1",
            "X-Real-IP: 203.0.113.1",
            "X-Forwarded-Host: evil.example",
        ];
        let body = json!({"email": "a@x.io", "password": "b", "passcode": "c"}).to_string();
        assert_problem(&world.send("POST /v1/login", &headers, body), 401, "invalid-login", "an unknown address");
        let requested = world.fakes.hasher.requested();
        let from_expected =
            |requester: &Requester| matches!(requester, Requester::Network { network, .. } if *network == expected);
        assert_eq!(requested.iter().filter(|requester| from_expected(requester)).count(), 1);
    }
}
