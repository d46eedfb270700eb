//! Bodies: their limits, their type, their form.

use crate::support::{World, WorldBuilder, assert_problem, request, s3};
use std::time::{Duration, Instant};
use vault_core::role::Role;
use vault_http::ServerSettings;

const JSON: &str = "Content-Type: application/json";
const LOGIN: &str = "POST /v1/login";

#[test]
fn a_body_has_64_kib_however_it_is_sent() {
    let minute = |settings: &mut ServerSettings| settings.listener.deadlines.body = Duration::from_secs(60);
    let world = WorldBuilder::default().settings(minute).start();
    let fits = format!("{{\"email\": \"{}\"}}", "a".repeat(64 * 1024 - 13));
    assert_eq!(fits.len(), 64 * 1024);
    assert_problem(&world.send(LOGIN, &[JSON], &fits), 400, "malformed-request", "just fits");

    let began = Instant::now();
    assert_problem(&world.send(LOGIN, &[JSON], format!("{fits} ")), 413, "too-large", "one byte more");
    let mut wire = world.wire();
    wire.send(format!("{LOGIN} HTTP/1.1\r\nHost: vault\r\n{JSON}\r\nContent-Length: 1099511627776\r\n\r\n{{"));
    assert_problem(&wire.receive(), 413, "too-large", "1 TiB announced");
    assert!(wire.is_closed());
    let mut wire = world.wire();
    wire.send(format!("{LOGIN} HTTP/1.1\r\nHost: vault\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n"));
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    for _ in 0..17 {
        wire.try_send(&chunk);
    }
    assert_problem(&wire.receive(), 413, "too-large", "chunked, never ended");
    while wire.try_send(&chunk) {
        // A body's own deadline is not what ends it: that is a minute here.
        assert!(began.elapsed() < Duration::from_secs(30), "a refused body is read on and on");
    }
}

#[test]
fn chunks_make_one_body_and_the_connection_goes_on() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let body = s3("a", "b");
    let mut wire = world.wire();
    for _ in 0..2 {
        wire.send(format!("PATCH /v1/organization-vault HTTP/1.1\r\nHost: v\r\n{JSON}\r\n{token}\r\nTransfer-Encoding: chunked\r\n\r\n"));
        for byte in body.bytes() {
            wire.send(format!("1\r\n{}\r\n", char::from(byte)));
        }
        wire.send("0\r\n\r\n");
        let response = wire.receive();
        assert_eq!(response.status, 201, "{}", response.text());
    }
}

#[test]
fn only_json_is_taken() {
    let world = World::start();
    let token = world.token(Role::Editor);
    for line in [LOGIN, "PATCH /v1/organization-vault"] {
        for headers in [
            &[][..],
            &["Content-Type: text/plain"],
            &["Content-Type: application/json; charset=utf-7"],
            &["Content-Type: multipart/form-data; boundary=x"],
            &["Content-Type: application/x-www-form-urlencoded"],
            &[JSON, "Content-Encoding: gzip"],
            &[JSON, "Content-Encoding: br"],
            &[JSON, "Content-Encoding: zstd"],
            &[JSON, "Content-Encoding: identity"],
            &[JSON, JSON],
        ] {
            let mut all = vec![&*token];
            all.extend_from_slice(headers);
            assert_problem(&world.send(line, &all, "{}"), 415, "unsupported-media-type", &format!("{headers:?}"));
        }
        for headers in
            [&["content-type: Application/JSON; Charset=UTF-8"], &["Content-Type: application/json;charset=\"utf-8\""]]
        {
            let mut all = vec![&*token];
            all.extend_from_slice(headers);
            assert_problem(&world.send(line, &all, "{}"), 400, "malformed-request", line);
        }
    }
}

#[test]
fn hostile_documents_are_refused_quickly() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let arrays = "[".repeat(60_000);
    let objects = "{\"a\":".repeat(12_000);
    let members = format!("{{{}\"z\":1}}", (0..6_000).map(|index| format!("\"{index}\":1,")).collect::<String>());
    let digits = format!("{{\"email\":{}}}", "9".repeat(60_000));
    let name = format!("{{\"{}\":1}}", "n".repeat(60_000));
    let bodies: [&[u8]; 16] = [
        arrays.as_bytes(),
        objects.as_bytes(),
        members.as_bytes(),
        digits.as_bytes(),
        name.as_bytes(),
        b"{\"email\":1e400}",
        b"\xff\xfe{\0}\0",
        b"\xef\xbb\xbf{}",
        b"{\"email\":\"\xff\"}",
        b"{\"email\":\"\\ud800\"}",
        b"{\"email\":\"a\",}",
        b"{'email':1}",
        b"NaN",
        b"{}{}",
        b" ",
        b"{\"email\":\"\x01\"}",
    ];
    for line in [LOGIN, "PATCH /v1/organization-vault"] {
        for body in bodies {
            let what = String::from_utf8_lossy(&body[..body.len().min(20)]).into_owned();
            let response = world.send(line, &[&token, JSON], body);
            assert_problem(&response, 400, "malformed-request", &what);
            assert!(response.body.len() < 64 * 1024, "{what}");
        }
    }
    assert_problem(&world.send(LOGIN, &[JSON], ""), 400, "malformed-request", "nothing");
    assert_eq!(world.send("GET /livez", &[], "").status, 200);
}

#[test]
fn a_body_where_none_belongs_is_ignored_within_the_same_limits() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let mut wire = world.wire();
    for _ in 0..3 {
        let response = wire.exchange(request("GET /v1/organization-vault", &[&token], "x".repeat(40_000)));
        assert_eq!((response.status, response.header("connection")), (200, None));
        let response = wire.exchange(request("DELETE /v1/organization-vault/x", &[&token], "{\"id\":1}"));
        assert_problem(&response, 404, "not-found", "a DELETE with a body");
    }
    let response = world.send("GET /v1/organization-vault", &[&token], "x".repeat(64 * 1024 + 1));
    assert_problem(&response, 413, "too-large", "a GET with a large body");
    let mut wire = world.wire();
    let response = wire.exchange(request("POST /v1/logout", &[&token], "ignored"));
    assert_eq!(response.status, 204);
    assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
}

#[test]
fn a_smuggled_request_is_not_seen() {
    let world = World::start();
    let mut wire = world.wire();
    wire.send(concat!(
        "POST /v1/login HTTP/1.1\r\nHost: v\r\nContent-Type: application/json\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: v\r\n\r\n"
    ));
    let response = wire.receive();
    assert_eq!(response.status, 400);
    assert!(wire.is_closed());
    let mut wire = world.wire();
    wire.send("POST /v1/login HTTP/1.1\r\nHost: v\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}GET /livez HTTP/1.1\r\nHost: v\r\n\r\n");
    assert_problem(&wire.receive(), 400, "malformed-request", "an upgrade with a body");
    assert!(wire.is_closed());
}
