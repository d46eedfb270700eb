//! Bodies: their limits, their type, their form.

use crate::support::{World, assert_problem, request, s3};
use vault_core::role::Role;

const JSON: &str = "Content-Type: application/json";
const LOGIN: &str = "POST /v1/login";

#[test]
fn chunked_body_is_joined_and_connection_stays_open() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let body = s3("a", "b");
    let mut wire = world.wire();
    for _ in 0..2 {
        wire.send(format!("PATCH /v1/organization-vault HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n{token}\r\nTransfer-Encoding: chunked\r\n\r\n"));
        for byte in body.bytes() {
            wire.send(format!("1\r\n{}\r\n", char::from(byte)));
        }
        wire.send("0\r\n\r\n");
        let response = wire.receive();
        assert_eq!(response.status, 201, "{}", response.text());
    }
}

#[test]
fn only_json_is_accepted() {
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
fn unexpected_body_is_ignored_within_limits() {
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
fn smuggled_request_is_not_executed() {
    let world = World::start();
    let mut wire = world.wire();
    wire.send(concat!(
        "POST /v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ));
    let response = wire.receive();
    assert_eq!(response.status, 400);
    assert!(wire.is_closed());
    let mut wire = world.wire();
    wire.send("POST /v1/login HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_problem(&wire.receive(), 400, "malformed-request", "an upgrade with a body");
    assert!(wire.is_closed());
}
