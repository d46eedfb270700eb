//! Requests behind one whose response closes the connection are not executed (RFC 9112, 9.6).

use crate::support::{Wire, World, WorldBuilder, request};
use crate::tls;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tokio::task::spawn_blocking;
use vault_core::role::Role;
use vault_http::Readiness;

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
            assert!(wire.is_closed(), "a second answer after {what}");
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

#[test]
fn pipelined_requests_are_independent() {
    // The response to the first request is delayed until the others are sent. Each of these would change its length or
    // its connection.
    for behind in [
        request("HEAD /livez", &[], ""),
        request("GET /livez", &["Connection: close"], ""),
        b"GET /livez HTTP/1.0\r\n\r\n".to_vec(),
        request("POST /v1/login", &["Content-Type: application/json", "Transfer-Encoding: chunked"], ""),
    ] {
        let asked = Arc::new(Barrier::new(2));
        let answering = Arc::clone(&asked);
        let readiness = Readiness::new(move || {
            let answering = Arc::clone(&answering);
            async move { spawn_blocking(move || answering.wait()).await.map(drop).map_err(|error| error.to_string()) }
        });
        let world = WorldBuilder::default().parts(|parts| parts.readiness = readiness).start();
        let mut wire = world.wire();
        let first = request("GET /readyz", &[], "");
        wire.send([&first[..], &behind].concat());
        asked.wait();
        let response = wire.receive();
        assert_eq!((response.status, response.header("connection")), (200, None));
        assert_eq!(response.text(), "{\"status\":\"ok\"}");
        if behind.starts_with(b"HEAD") {
            assert_eq!(wire.receive_for("HEAD").header("content-length"), Some("15"));
        } else if behind.starts_with(b"GET") {
            assert_eq!(wire.receive().text(), "{\"status\":\"ok\"}");
            assert!(wire.is_closed());
        } else {
            wire.send("2\r\n{}\r\n0\r\nTrailer: 1\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!((wire.receive().status, wire.receive().status), (400, 200));
        }
    }
}
