//! Requests behind one whose response closes the connection are not executed (RFC 9112, 9.6).

use super::app::{App, JSON, s3};
use super::tls;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use vault_tests::wire::{Wire, request};

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
fn check_nothing_is_executed<S: Read + Write>(
    connect: impl Fn() -> Wire<S>,
    closing: Vec<(&'static str, Vec<u8>, u16)>,
    victim: &[u8],
    is_unharmed: impl Fn() -> bool,
) {
    for (what, request, status) in closing {
        for pieces in [vec![[&request, victim].concat()], vec![request, victim.to_vec()]] {
            let mut wire = connect();
            for piece in &pieces {
                wire.send(piece);
            }
            let response = wire.answer().unwrap();
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
    let app = App::start();
    let editor = app.editor();
    let header = editor.header();
    let path = format!("/v1/organization-vault/{}", editor.save(&s3("a", "b")));
    let victim = request(&format!("DELETE {path}"), &[&header], "");
    let encoded = request("PATCH /v1/organization-vault", &[&header, JSON, "Content-Encoding: gzip"], "{}");
    let too_large = request("POST /v1/login", &[JSON], "x".repeat(64 * 1024 + 1));
    let mut all = closing(&header);
    all.extend([("an encoded save", encoded, 415), ("a body that is too large", too_large, 413)]);
    for listed in &mut all {
        // A list runs on another thread, so the request behind it is read concurrently.
        if listed.0 == "a client that closes, and waits" {
            listed.1 = request("GET /v1/organization-vault", &[&header, "Connection: close"], "");
        }
    }
    check_nothing_is_executed(|| app.wire(), all, &victim, || editor.ids().len() == 1);
    let mut wire = app.wire();
    assert_eq!(wire.exchange([request("GET /livez", &[], ""), victim].concat()).status, 200);
    assert_eq!(wire.answer().unwrap().status, 204, "behind any other answer it is carried out");
}

#[test]
fn requests_after_closing_response_over_tls_are_not_executed() {
    let identity = tls::Identity::new();
    let (app, _) = tls::app(&identity);
    let mut first = tls::wire(&app, &identity);
    let login = first.exchange(request("POST /v1/login", &[JSON], app.account("editor").sound_login().to_string()));
    let header = format!("Authorization: Bearer {}", login.json()["access_token"].as_str().unwrap());
    let saved = first.exchange(request("PATCH /v1/organization-vault", &[&header, JSON], s3("a", "b").to_string()));
    let path = format!("/v1/organization-vault/{}", saved.json()["id"].as_str().unwrap());
    let show = request(&format!("GET {path}"), &[&header], "");
    let is_there = || tls::wire(&app, &identity).exchange(&show).status == 200;
    let victim = request(&format!("DELETE {path}"), &[&header], "");
    check_nothing_is_executed(|| tls::wire(&app, &identity), closing(&header), &victim, is_there);
}

#[test]
fn requests_after_closing_response_on_unix_socket_are_not_executed() {
    let app = App::start();
    let admin = app.admin();
    admin.save(&s3("imports", "b"));
    let job = app.listener().job(&admin, "nightly", &["imports"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = app.socket(&path, 0o600, |_, _| {}).unwrap();
    let connect = || {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Wire::over(stream)
    };
    let victim = request("POST /v1/activations", &[&job.header(), JSON], "{\"namespace\":\"imports\"}");
    let closing = closing(&job.header()).into_iter().filter(|(what, ..)| *what != "an upgrade with a body").collect();
    check_nothing_is_executed(connect, closing, &victim, || job.live().is_empty());
    listener.stop(&app);
}
