//! Requests behind one whose response closes the connection are not executed (RFC 9112, 9.6).

use crate::support::{Wire, World, request};
use crate::tls;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use vault_core::role::Role;

const JSON: &str = "Content-Type: application/json";

/// Requests whose responses close the connection, with the status of each. All of them are complete, so the following
/// bytes could be parsed as another request.
fn closing(token: &str) -> Vec<(&'static str, Vec<u8>, u16)> {
    let with = |line: &str, headers: &[&str], body: &str| request(line, &[headers, &[token]].concat(), body);
    let long = format!("GET /{}", "a".repeat(9_000));
    let large = format!("X-Large: {}", "a".repeat(17_000));
    vec![
        ("an upgrade", with("GET /livez", &["Connection: Upgrade", "Upgrade: h2"], ""), 400),
        ("an upgrade with a body", with("POST /v1/login", &["Upgrade: TLS/1.0", JSON], "{}"), 400),
        ("an ignored upgrade", with("GET /livez", &["Connection: Upgrade", "Upgrade: h2c"], ""), 200),
        ("an encoded body", with("POST /v1/logout/", &["Content-Encoding: gzip", JSON], "{}"), 404),
        ("an expected body", with("PUT /livez", &["Expect: 100-continue"], "{}"), 405),
        ("an address that is too long", with(&long, &[], ""), 414),
        ("headers that are too large", with("GET /livez", &[&large], ""), 431),
        ("a client that closes", with("GET /livez", &["Connection: close"], ""), 200),
        ("a client that closes, and waits", with("GET /readyz", &["Connection: close"], ""), 200),
        ("an older protocol", [b"GET /livez HTTP/1.0\r\n".as_slice(), token.as_bytes(), b"\r\n\r\n"].concat(), 200),
    ]
}

/// Sends each closing request with `victim` behind it. `is_unharmed` returns whether the latter had no effect.
fn check_nothing_is_executed(
    connect: impl Fn() -> Wire,
    closing: Vec<(&'static str, Vec<u8>, u16)>,
    victim: &[u8],
    is_unharmed: impl Fn() -> bool,
) {
    for (what, request, status) in closing {
        for pieces in [vec![[&request, victim].concat()], vec![request, victim.to_vec()]] {
            let mut wire = connect();
            for piece in &pieces {
                wire.try_send(piece);
            }
            let response = wire.receive();
            assert_eq!(response.status, status, "{what}");
            assert!(what == "an older protocol" || response.header("connection") == Some("close"), "{what}");
            // A pipelined request may get status 400 instead of nothing.
            let rest = wire.rest();
            assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{rest} after {what}");
            assert!(is_unharmed(), "the request behind was executed: {what}");
        }
    }
}

#[test]
fn requests_after_closing_response_are_not_executed() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let id = world.save(&token, "a", "b");
    let path = format!("/v1/organization-vault/{id}");
    let is_there = || world.send(&format!("GET {path}"), &[&token], "").status == 200;
    let encoded = request("PATCH /v1/organization-vault", &[&token, JSON, "Content-Encoding: gzip"], "{}");
    let too_large = request("POST /v1/login", &[JSON], "x".repeat(64 * 1024 + 1));
    let mut all = closing(&token);
    all.extend([("an encoded save", encoded, 415), ("a body that is too large", too_large, 413)]);
    for listed in &mut all {
        // A list runs on another thread, so the request behind it is read concurrently.
        if listed.0 == "a client that closes, and waits" {
            listed.1 = request("GET /v1/organization-vault", &[&token, "Connection: close"], "");
        }
    }
    check_nothing_is_executed(|| world.wire(), all, &request(&format!("DELETE {path}"), &[&token], ""), is_there);
    let mut wire = world.wire();
    let both = [request("GET /livez", &[], ""), request(&format!("DELETE {path}"), &[&token], "")].concat();
    assert_eq!(wire.exchange(both).status, 200);
    assert_eq!(wire.receive_for("DELETE").status, 204, "behind any other answer it is carried out");
}

#[test]
fn requests_after_closing_response_over_tls_are_not_executed() {
    let identity = tls::Identity::new();
    let (world, _) = tls::world(&identity);
    let mut first = tls::wire(&world, &identity);
    world.account("Acme", "editor@acme.example", Role::Editor);
    let login = first.exchange(request("POST /v1/login", &[JSON], world.login_body("editor@acme.example")));
    let token = format!("Authorization: Bearer {}", login.json()["access_token"].as_str().unwrap());
    let saved = first.exchange(request("PATCH /v1/organization-vault", &[&token, JSON], crate::support::s3("a", "b")));
    let path = format!("/v1/organization-vault/{}", saved.json()["id"].as_str().unwrap());
    let show = request(&format!("GET {path}"), &[&token], "");
    let is_there = || tls::wire(&world, &identity).exchange(&show).status == 200;
    let victim = request(&format!("DELETE {path}"), &[&token], "");
    check_nothing_is_executed(|| tls::wire(&world, &identity), closing(&token), &victim, is_there);
}

#[test]
fn requests_after_closing_response_on_unix_socket_are_not_executed() {
    let world = World::start();
    let admin = world.token(Role::Admin);
    world.save(&admin, "imports", "b");
    let (_, token) = world.integration(&admin, "nightly", &["imports"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let activation_listener = world.socket_listener(&path, 0o600).unwrap();
    let connect = || {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Wire::over(stream)
    };
    let victim = request("POST /v1/activations", &[&token, JSON], "{\"namespace\":\"imports\"}");
    let live = request("GET /v1/activations", &[&token], "");
    let closing = closing(&token).into_iter().filter(|(what, ..)| *what != "an upgrade with a body").collect();
    check_nothing_is_executed(connect, closing, &victim, || connect().exchange(&live).text() == "[]");
    activation_listener.stop(&world);
}
