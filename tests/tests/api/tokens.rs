//! Access tokens and roles.

use super::app::{App, JSON, UNKNOWN, s3};
use http::Request;
use serde_json::{Value, json};
use vault_http::{Access, OperatorApi, Route, routes};
use vault_tests::Answer;

/// Returns a body in the form that an operation accepts, if it accepts one.
pub(crate) fn sound_body(route: &Route) -> Option<Value> {
    Some(match (route.method, route.template.trim_start_matches("{base}")) {
        ("PATCH", "/organization-vault") => s3("a", "b"),
        ("POST", "/organization-vault/read") => json!({"text": "a"}),
        ("POST", "/organization-vault/find") => json!({"text": "abcd"}),
        ("POST", "/accounts") => json!({"email": "a@x.io", "role": "viewer"}),
        ("POST", "/integrations") => json!({"name": "a", "namespaces": ["a"]}),
        ("POST", "/integrations/{id}/trusts") => json!({"issuer": "a", "claims": {"/sub": "b"}}),
        ("PATCH", "/integrations/{id}") | ("PATCH", "/receivers/{id}") => json!({"state": "active"}),
        ("POST", "/namespaces/freeze" | "/namespaces/thaw") => json!({"namespace": "a"}),
        ("POST", "/organization-vault/{id}/versions" | "/organization-vault/{id}/match") => {
            json!({"data": s3("a", "b")["data"]})
        }
        ("PATCH", "/organization-vault/{id}") => json!({"vend": "any"}),
        ("POST", "/organization-vault/{id}/promote") => json!({"version": 1}),
        ("POST", "/receivers") => json!({"kind": "webhook", "url": "https://hooks.example"}),
        ("PATCH", "/accounts/{id}") => json!({"role": "viewer"}),
        ("POST", "/account/password") => json!({"password": "a", "passcode": "b", "new_password": "c"}),
        ("POST", "/account/passcode" | "/account/recovery-codes") => json!({"password": "a", "passcode": "b"}),
        ("POST", "/account/passcode/confirm") => json!({"passcode": "b"}),
        ("PUT", "/account/set-aside") => json!({"concern": "a", "until": null}),
        ("POST", "/login") => json!({"email": "a@x.io", "password": "b", "passcode": "c"}),
        ("POST", "/enrol") => json!({"enrolment_code": "a", "password": "b"}),
        ("POST", "/enrol/invitation") => json!({"enrolment_code": "a"}),
        ("POST", "/enrol/confirm") => json!({"enrolment_code": "a", "passcode": "b"}),
        ("POST", "/activations") => json!({"namespace": "a"}),
        ("POST", "/activations/check") => json!({"namespace": "a", "operations": []}),
        _ => return None,
    })
}

/// Returns method and path of a route, with these IDs.
pub(crate) fn line(route: &Route, id: &str) -> String {
    let path = route.template.replace("{base}", "/v1").replace("{id}", id).replace("{folder}", "parts");
    let path = path.replace("{version}", "7").replace("{trust}", "7").replace("{delivery}", "7");
    format!("{} {path}", route.method)
}

/// Every route that requires a token.
fn protected() -> Vec<Route> {
    let routes: Vec<_> = routes().filter(|route| matches!(route.access, Access::Session | Access::Role(_))).collect();
    assert_eq!(routes.len(), 55);
    routes
}

#[track_caller]
fn refused(answer: Answer, challenge: &str) {
    assert_eq!(answer.problem("invalid-token").header("www-authenticate"), Some(challenge));
}

#[test]
fn only_login_works_without_token() {
    let app = App::start();
    for route in protected() {
        for headers in [&[][..], &["Cookie: access_token=a"], &["Authorization: Basic YTpi"], &["X-Api-Key: a"]] {
            refused(app.send(&line(&route, "x"), headers, ""), "Bearer");
        }
    }
}

#[test]
fn a46_token_is_accepted_in_one_header_only() {
    let app = App::start();
    let token = app.admin().token;
    let path = "/v1/organization-vault";
    for name in ["access_token", "token", "authorization", "bearer_token"] {
        refused(app.send(&format!("GET {path}?{name}={token}"), &[], ""), "Bearer");
        let cookie = format!("Cookie: {name}={token}; Authorization=Bearer {token}");
        refused(app.send(&format!("GET {path}"), &[&cookie], ""), "Bearer");
        refused(app.send(&format!("GET {path}"), &[&format!("X-{}: {token}", name.replace('_', "-"))], ""), "Bearer");
        let form = "Content-Type: application/x-www-form-urlencoded";
        refused(app.send(&format!("PATCH {path}"), &[form], format!("{name}={token}")), "Bearer");
        let mut body = s3("a", "b");
        body[name] = json!(token);
        refused(app.send(&format!("PATCH {path}"), &[JSON], body.to_string()), "Bearer");
    }
    refused(app.send(&format!("GET {path}"), &[&format!("Proxy-Authorization: Bearer {token}")], ""), "Bearer");
}

#[test]
fn a47_every_header_form_has_defined_response() {
    let app = App::start();
    let token = app.admin().token;
    let ask = |headers: &[&str]| app.send("GET /v1/organization-vault", headers, "");
    for scheme in ["bearer", "BEARER", "Bearer", "bEARER"] {
        ask(&[&format!("authorization: {scheme} {token}")]).expect(200);
    }
    for spaced in [format!("authorization:Bearer {token}"), format!("AUTHORIZATION:   Bearer {token}  ")] {
        ask(&[&spaced]).expect(200); // white space around the value is not part of it
    }
    let long = "a".repeat(9 * 1024);
    for value in [
        "Bearer".to_owned(),
        format!("Bearer  {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {token}, Bearer {token}"),
        format!("Bearer {token},"),
        format!("Bearer {token} x"),
        format!("Bearer \"{token}\""),
        format!("Bearer token={token}"),
        format!("Bearer {token}x"),
        format!("Bearer {long}"),
        format!("Bearer {token}\u{e9}"),
        "Bearer =".to_owned(),
        String::new(),
    ] {
        refused(ask(&[&format!("Authorization: {value}")]), "Bearer error=\"invalid_token\"");
    }
    let header = format!("Authorization: Bearer {token}");
    refused(ask(&[&header, &header]), "Bearer error=\"invalid_token\"");
    refused(ask(&[&header, "Authorization: Basic YTpi"]), "Bearer error=\"invalid_token\"");
    for other in ["Basic YTpi", "Digest username=\"a\"", "Negotiate abcd", "DPoP abcd"] {
        refused(ask(&[&format!("Authorization: {other}")]), "Bearer"); // not our scheme
    }
    refused(ask(&[]), "Bearer");
}

#[test]
fn token_expires_with_its_time_or_session() {
    let app = App::start();
    let admin = app.admin();
    let logged_out = admin.log_out().expect(204);
    assert_eq!((logged_out.body.len(), logged_out.header("content-length")), (0, None));
    for route in protected() {
        let body = sound_body(&route).unwrap_or_else(|| json!({})).to_string();
        let answer = app.send(&line(&route, "x"), &[&admin.header(), JSON], body);
        refused(answer, "Bearer error=\"invalid_token\"");
    }
    let editor = app.editor();
    app.clock.advance_seconds(3_599);
    assert!(editor.is_live());
    app.clock.advance_seconds(1);
    assert!(!editor.is_live());
}

#[test]
fn role_is_checked_before_rest_of_request() {
    let app = App::start();
    let viewer = app.viewer();
    let insufficient = |line: &str, headers: &[&str], body: &str| {
        let answer = app.send(line, &[&[&*viewer.header()], headers].concat(), body).problem("insufficient-role");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""), "{line}");
    };
    for route in protected().into_iter().filter(|route| matches!(route.access, Access::Role(_))) {
        if app.send(&line(&route, UNKNOWN), &[&viewer.header()], "").status != 403 {
            continue; // viewers may
        }
        for id in [UNKNOWN, "x"] {
            let line = line(&route, id);
            insufficient(&line, &[], "");
            insufficient(&format!("{line}?a=b"), &["Content-Type: text/plain", "If-Match: \"a\""], "{");
            insufficient(&line, &[JSON], "{}");
        }
    }
    assert!(viewer.is_live());
}

#[test]
fn refusal_before_the_body_closes_the_connection() {
    let app = App::start();
    let mut wire = app.wire();
    let answer = wire.exchange(vault_tests::wire::request("PATCH /v1/organization-vault", &[JSON], "{}"));
    assert_eq!(answer.problem("invalid-token").header("connection"), Some("close"));
    assert!(wire.is_closed());
}

#[test]
fn request_over_tcp_is_no_operator() {
    let app = App::start();
    let api = OperatorApi::new(app.server_parts());
    let headers = [("authorization", "Bearer "), ("content-type", "application/json")];
    for path in ["/v1/receivers", "/v1/audit"] {
        let mut asked = Request::get(format!("http://localhost{path}"));
        for (name, value) in headers {
            asked = asked.header(name, value);
        }
        let answer = app.runtime().block_on(api.answer(None, asked.body(Vec::new()).unwrap()));
        assert_eq!(answer.status(), 200, "{path} in the process");
        let lines = headers.map(|(name, value)| format!("{name}: {value}"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        app.send(&format!("GET {path}"), &lines, "").problem("invalid-token");
    }
    // Routes of the caller's own account reject operators.
    let own = Request::get("http://localhost/v1/account").body(Vec::new()).unwrap();
    assert_eq!(app.runtime().block_on(api.answer(None, own)).status(), 401);
}
