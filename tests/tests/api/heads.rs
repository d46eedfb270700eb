//! Request heads and connections: limits, malformed and smuggled requests.

use super::app::{App, JSON, s3};
use std::fmt::Write as _;
use vault_tests::wire::request;

#[test]
fn a83_heads_are_bounded() {
    let app = App::start();
    let headers = |count: usize, length: usize| {
        let lines: Vec<_> = (0..count).map(|number| format!("X-{number}: {}", "v".repeat(length))).collect();
        request("GET /livez", &lines.iter().map(String::as_str).collect::<Vec<_>>(), "")
    };
    let line = |target: &str| request(&format!("GET {target}"), &[], "");
    for (name, head) in [
        ("200 headers", headers(200, 1)),
        ("97 headers", headers(97, 1)),
        ("a head of 131,073 bytes", headers(2, 65_500)),
        ("a header of 64 KiB", headers(1, 64 * 1024)),
        ("60 headers of 1 KiB", headers(60, 1024)),
        ("an address of 33 KB", line(&format!("/{}", "a".repeat(33 * 1024)))),
        ("a query of 33 KB", line(&format!("/livez?{}", "a".repeat(33 * 1024)))),
        ("an address of 200 KB", line(&format!("/{}", "a".repeat(200 * 1024)))),
        ("a header name of 64 KiB", request("GET /livez", &[&format!("{}: v", "n".repeat(64 * 1024))], "")),
    ] {
        let mut wire = app.wire();
        wire.send(head);
        if let Some(answer) = wire.answer() {
            assert!(matches!(answer.status, 400 | 414 | 431), "{name}: {}", answer.status);
            if !answer.body.is_empty() {
                answer.check_common();
            }
        }
        assert!(wire.ends(), "{name}: the connection stays open");
    }
    // Requests within the limits succeed.
    for head in [headers(60, 64), headers(1, 8 * 1024), line(&format!("/livez?{}", "a=&".repeat(10)))] {
        let answer = app.wire().exchange(head);
        assert!(matches!(answer.status, 200 | 400), "{}", answer.status);
    }
}

/// Invalid or ambiguous HTTP.
#[test]
fn malformed_heads_end_the_connection() {
    let app = App::start();
    let cases: &[&[u8]] = &[
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /livez\r\n\r\n",
        b"GET /livez HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET  /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nNo colon\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
        b"GET /li\x00vez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"G\x00T /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\r\n\r\n\r\n\r\nnonsense\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\nhello",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x5\r\n\r\nhello",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n\r\n",
    ];
    for case in cases {
        let mut wire = app.wire();
        wire.send(case);
        wire.finish();
        if let Some(answer) = wire.answer() {
            let expected = matches!(answer.status, 400 | 404 | 405 | 413 | 501 | 505);
            assert!(expected, "{}: {}", case.escape_ascii(), answer.status);
        }
        assert!(wire.ends(), "{}", case.escape_ascii());
    }
    app.send("GET /livez", &[], "").expect(200);
}

/// A request that is smuggled in another one's body gets no response, with any contradicting lengths.
#[test]
fn smuggled_requests_get_no_answer() {
    let app = App::start();
    let editor = app.editor();
    let id = editor.save(&s3("a", "b"));
    let line = format!("DELETE /v1/organization-vault/{id}");
    let smuggled = String::from_utf8(request(&line, &[&editor.header()], "")).unwrap();
    let chunked = format!("0\r\n\r\n{smuggled}");
    let with = |headers: &[&str], body: &str| {
        let mut text = format!("POST /v1/login HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n");
        for header in headers {
            write!(text, "{header}\r\n").unwrap();
        }
        format!("{text}\r\n{body}")
    };
    let length = format!("Content-Length: {}", chunked.len());
    let twice = format!("{length}, {}", chunked.len());
    let framings: [&[&str]; 15] = [
        &[&length, "Transfer-Encoding: chunked"],
        &["Transfer-Encoding: chunked", &length],
        &["Content-Length: 5", "Transfer-Encoding: chunked"],
        &["Transfer-Encoding: chunked", "Transfer-Encoding: identity", &length],
        &["Transfer-Encoding: identity", &length],
        &["Transfer-Encoding: identity, chunked", &length],
        &["Transfer-Encoding: chunked, identity"],
        &["Transfer-Encoding: xchunked", &length],
        &["Transfer-Encoding : chunked", &length],
        &["Transfer-Encoding:\u{b}chunked", &length],
        &[" Transfer-Encoding: chunked", &length],
        &["X: y\n Transfer-Encoding: chunked", &length],
        &["Content-Length: 0", &length],
        &[&length, "Content-Length: 0"],
        &[&twice],
    ];
    let chunks = [
        "2;x=\n\r\n{}\r\n0\r\n\r\n",
        "-1\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
        "2\n{}\n0\n\n",
    ];
    let chunks = chunks.map(|chunks| with(&["Transfer-Encoding: chunked"], &format!("{chunks}{smuggled}")));
    for case in framings.map(|headers| with(headers, &chunked)).into_iter().chain(chunks) {
        let mut wire = app.wire();
        wire.send(&case);
        wire.finish();
        let statuses: Vec<u16> = std::iter::from_fn(|| wire.answer()).map(|answer| answer.status).collect();
        let expected = statuses.len() <= 1 && statuses.iter().all(|status| matches!(status, 400 | 411 | 413 | 501));
        assert!(expected, "{}: {statuses:?}", case.split("\r\n\r\n").next().unwrap());
    }
    assert_eq!(editor.ids(), [&*id], "the smuggled request was carried out");
    // An unread body is not interpreted as a request.
    let body = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3000);
    for refused in [
        request("POST /v1/login", &[JSON], &body),
        request("PATCH /v1/organization-vault", &[], &body),
        request("POST /v1/login", &["Upgrade: websocket"], &body[..40]),
    ] {
        let mut wire = app.wire();
        wire.send(refused);
        wire.finish();
        let statuses: Vec<u16> = std::iter::from_fn(|| wire.answer()).map(|answer| answer.status).collect();
        let expected = statuses.iter().all(|&status| matches!(status, 400 | 401 | 413 | 415)) && statuses.len() <= 1;
        assert!(expected, "{statuses:?}");
    }
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let app = App::start();
    let mut wire = app.wire();
    let live = request("GET /livez", &[], "");
    wire.send(
        [request("GET /nonsense", &[], ""), request("POST /v1/login", &[JSON], "{}"), live.clone(), live].concat(),
    );
    assert_eq!([0; 4].map(|_| wire.answer().unwrap().status), [404, 400, 200, 200]);
}

#[test]
fn upgrades_are_refused_and_h2c_is_ignored() {
    let app = App::start();
    let h2c = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"];
    app.send("GET /livez", &h2c, "").expect(200);
    for upgrade in ["websocket", "h2c, websocket", "TLS/1.0", "HTTP/2.0"] {
        let headers = ["Connection: Upgrade", &format!("Upgrade: {upgrade}")];
        app.send("GET /livez", &headers, "").problem("malformed-request");
    }
}
