//! Access tokens and roles.

use crate::support::{World, assert_problem, request, s3};
use http::Request;
use serde_json::json;
use vault_core::role::Role;
use vault_http::{Access, OperatorApi, routes};

/// A body in the form that an operation accepts.
fn sound_body(line: &str) -> String {
    let body = match line {
        "PATCH /v1/organization-vault" => return s3("a", "b"),
        "POST /v1/organization-vault/read" => json!({"text": "a"}),
        "POST /v1/organization-vault/find" => json!({"text": "abcd"}),
        "POST /v1/accounts" => json!({"email": "a@x.io", "role": "viewer"}),
        "POST /v1/integrations" => json!({"name": "a", "namespaces": ["a"]}),
        "POST /v1/integrations/x/rotate" => json!({}),
        "POST /v1/integrations/x/trusts" => json!({"issuer": "a", "claims": {"/sub": "b"}}),
        "PATCH /v1/integrations/x" => json!({"state": "active"}),
        "POST /v1/namespaces/freeze" | "POST /v1/namespaces/thaw" => json!({"namespace": "a"}),
        "POST /v1/organization-vault/x/versions" => json!({"data": {}}),
        "PATCH /v1/organization-vault/x" => json!({"vend": "any"}),
        "POST /v1/organization-vault/x/match" => json!({"data": {}}),
        "POST /v1/organization-vault/x/check" => json!({}),
        "POST /v1/organization-vault/x/promote" => json!({"version": 1}),
        "POST /v1/receivers" => json!({"kind": "webhook", "url": "https://hooks.example"}),
        "PATCH /v1/receivers/x" => json!({"state": "active"}),
        "PATCH /v1/accounts/x" => json!({"role": "viewer"}),
        "POST /v1/account/password" => json!({"password": "a", "passcode": "b", "new_password": "c"}),
        "POST /v1/account/passcode/confirm" => json!({"passcode": "b"}),
        "PUT /v1/account/set-aside" => json!({"concern": "a"}),
        _ => json!({"password": "a", "passcode": "b"}),
    };
    body.to_string()
}

/// Every route that requires a token.
fn protected() -> Vec<String> {
    let routes = routes().filter(|route| matches!(route.access, Access::Session | Access::Role(_)));
    let lines: Vec<_> = routes.map(|route| format!("{} {}", route.method, route.template)).collect();
    assert_eq!(lines.len(), 55, "{lines:?}");
    lines
        .iter()
        .map(|line| {
            line.replace("{base}", "/v1")
                .replace("{id}", "x")
                .replace("{version}", "7")
                .replace("{trust}", "7")
                .replace("{delivery}", "7")
        })
        .collect()
}

#[test]
fn only_login_works_without_token() {
    let world = World::start();
    for line in &protected() {
        for headers in [&[][..], &["Cookie: access_token=a"], &["Authorization: Basic YTpi"], &["X-Api-Key: a"]] {
            let response = world.send(line, headers, "");
            assert_problem(&response, 401, "invalid-token", line);
            assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{line} {headers:?}");
        }
    }
}

#[test]
fn token_is_read_only_from_header() {
    let world = World::start();
    let header = world.token(Role::Admin);
    let token = header.rsplit(' ').next().unwrap();
    let query = format!("GET /v1/organization-vault?access_token={token}");
    assert_problem(&world.send(&query, &[], ""), 401, "invalid-token", "query");
    let cookie = format!("Cookie: access_token={token}; Authorization=Bearer {token}");
    assert_problem(&world.send("GET /v1/organization-vault", &[&cookie], ""), 401, "invalid-token", "cookie");
    let form = format!("access_token={token}");
    let headers = ["Content-Type: application/x-www-form-urlencoded"];
    assert_problem(&world.send("PATCH /v1/organization-vault", &headers, form), 401, "invalid-token", "form");
}

#[test]
fn malformed_credentials_are_invalid_tokens() {
    let world = World::start();
    let header = world.token(Role::Admin);
    let token = header.rsplit(' ').next().unwrap();
    for scheme in ["bearer", "BEARER", "Bearer"] {
        let header = format!("authorization: {scheme} {token}");
        assert_eq!(world.send("GET /v1/organization-vault", &[&header], "").status, 200, "{scheme}");
    }
    let other = format!("{token}x");
    let long = "a".repeat(9 * 1024);
    for value in [
        "Bearer".to_owned(),
        format!("Bearer  {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {token}, Bearer {token}"),
        format!("Bearer {token} x"),
        format!("Bearer \"{token}\""),
        format!("Bearer {other}"),
        format!("Bearer {long}"),
        format!("Bearer {token}\u{e9}"),
        String::new(),
    ] {
        let header = format!("Authorization: {value}");
        let response = world.send("GET /v1/organization-vault", &[&header], "");
        assert_problem(&response, 401, "invalid-token", &value);
        assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{value}");
    }
    let response = world.send("GET /v1/organization-vault", &[&header, &header], "");
    assert_problem(&response, 401, "invalid-token", "two headers");
}

#[test]
fn token_expires_with_its_time_or_session() {
    let world = World::start();
    let token = world.token(Role::Admin);
    assert_eq!(world.send("GET /v1/organization-vault", &[&token], "").status, 200);
    let response = world.send("POST /v1/logout", &[&token], "");
    assert_eq!((response.status, response.body.len(), response.header("content-length")), (204, 0, None));
    for line in &protected() {
        let response = world.send_json(line, &token, sound_body(line));
        assert_problem(&response, 401, "invalid-token", line);
        assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{line}");
    }
    let token = world.token(Role::Editor);
    world.clock.advance_seconds(3_599);
    assert_eq!(world.send("GET /v1/organization-vault", &[&token], "").status, 200);
    world.clock.advance_seconds(1);
    assert_problem(&world.send("GET /v1/organization-vault", &[&token], ""), 401, "invalid-token", "expired");
}

#[test]
fn role_is_checked_before_rest_of_request() {
    let world = World::start();
    let token = world.token(Role::Viewer);
    for (line, headers, body) in [
        ("PATCH /v1/organization-vault", &[&*token][..], ""),
        ("PATCH /v1/organization-vault?a=b", &[&*token, "Content-Type: text/plain"], "{"),
        ("PATCH /v1/organization-vault", &[&*token, "Content-Type: application/json"], "{}"),
        ("DELETE /v1/organization-vault/0193aaaa-0000-7000-8000-000000000000", &[&*token], ""),
        ("DELETE /v1/organization-vault/x", &[&*token], ""),
        ("GET /v1/accounts?a=b", &[&*token], ""),
        ("POST /v1/accounts", &[&*token], "{"),
        ("PATCH /v1/accounts/x", &[&*token, "If-Match: \"a\""], "{}"),
        ("DELETE /v1/accounts/x?a=b", &[&*token], ""),
        ("GET /v1/integrations?a=b", &[&*token], ""),
        ("POST /v1/integrations", &[&*token], "{"),
        ("POST /v1/integrations/x/rotate", &[&*token, "If-Match: \"a\""], "{"),
        ("DELETE /v1/integrations/x?a=b", &[&*token], ""),
    ] {
        let response = world.send(line, headers, body);
        assert_problem(&response, 403, "insufficient-role", line);
        assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""), "{line}");
    }
    assert_eq!(world.send("GET /v1/organization-vault", &[&token], "").status, 200);
}

#[test]
fn refusal_before_the_body_closes_the_connection() {
    let world = World::start();
    let mut wire = world.wire();
    let response = wire.exchange(request("PATCH /v1/organization-vault", &["Content-Type: application/json"], "{}"));
    assert_problem(&response, 401, "invalid-token", "no token");
    assert_eq!(response.header("connection"), Some("close"));
    assert!(wire.is_closed());
}

#[test]
fn request_over_tcp_is_no_operator() {
    let world = World::start();
    let api = OperatorApi::new(world.server_parts());
    let headers = [("host", "localhost"), ("authorization", "Bearer "), ("content-type", "application/json")];
    for path in ["/v1/receivers", "/v1/audit"] {
        let mut asked = Request::get(format!("http://localhost{path}"));
        for (name, value) in headers {
            asked = asked.header(name, value);
        }
        let answer = world.runtime().block_on(api.answer(None, asked.body(Vec::new()).unwrap()));
        assert_eq!(answer.status(), 200, "{path} in the process");
        let lines = headers.map(|(name, value)| format!("{name}: {value}"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.starts_with("host")).collect();
        let response = world.send(&format!("GET {path}"), &lines, "");
        assert_problem(&response, 401, "invalid-token", path);
    }
    // Routes of the caller's own account reject operators.
    let own = Request::get("http://localhost/v1/account").body(Vec::new()).unwrap();
    assert_eq!(world.runtime().block_on(api.answer(None, own)).status(), 401);
}
