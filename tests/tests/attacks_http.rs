//! Attacks with request heads and connections. These requests do not reach the database, so the embedded one is
//! sufficient.

use serde_json::json;
use std::collections::HashSet;
use std::fmt::Write as _;
use vault_tests::client::Call;
use vault_tests::samples::{s3, small};
use vault_tests::sql::Sql;
use vault_tests::wire::{Wire, request};
use vault_tests::{Answer, Database, Session, Vault};

#[test]
fn a83_heads_are_bounded() {
    let vault = Vault::start(Database::Sqlite);
    let headers = |count: usize, length: usize| {
        let mut text = String::from("GET /livez HTTP/1.1\r\nHost: localhost\r\n");
        for number in 0..count {
            write!(text, "X-{number}: {}\r\n", "v".repeat(length)).unwrap();
        }
        text + "\r\n"
    };
    let line = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let cases = [
        ("200 headers", headers(200, 1)),
        ("97 headers", headers(97, 1)),
        ("a head of 131,073 bytes", headers(2, 65_500)),
        ("a header of 64 KiB", headers(1, 64 * 1024)),
        ("60 headers of 1 KiB", headers(60, 1024)),
        ("an address of 33 KB", line(&format!("/{}", "a".repeat(33 * 1024)))),
        ("a query of 33 KB", line(&format!("/livez?{}", "a".repeat(33 * 1024)))),
        ("an address of 200 KB", line(&format!("/{}", "a".repeat(200 * 1024)))),
        (
            "a header name of 64 KiB",
            format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{}: v\r\n\r\n", "n".repeat(64 * 1024)),
        ),
    ];
    for (name, head) in &cases {
        let mut wire = Wire::connect(vault.address());
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
        let answer = Wire::exchange(vault.address(), head).unwrap();
        assert!(matches!(answer.status, 200 | 400), "{}", answer.status);
    }
}

/// Invalid or ambiguous HTTP.
#[test]
fn malformed_heads_end_the_connection() {
    let vault = Vault::start(Database::Sqlite);
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
        let mut wire = Wire::connect(vault.address());
        wire.send(case);
        wire.finish();
        if let Some(answer) = wire.answer() {
            assert!(
                matches!(answer.status, 400 | 404 | 405 | 413 | 501 | 505),
                "{}: {}",
                String::from_utf8_lossy(case),
                answer.status
            );
        }
        assert!(wire.ends(), "{}", String::from_utf8_lossy(case));
    }
    assert_eq!(vault.client().get("/livez").send().status, 200);
}

/// A request that is smuggled in another one's body gets no response, with any contradicting lengths.
#[test]
fn smuggled_requests_get_no_answer() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let id = session.save(&s3().request);
    let smuggled = format!(
        "DELETE /v1/organization-vault/{id} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        session.token
    );
    let chunked = format!("0\r\n\r\n{smuggled}");
    let with = |headers: &[&str], body: &str| {
        let mut text = String::from("POST /v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        for header in headers {
            write!(text, "{header}\r\n").unwrap();
        }
        format!("{text}\r\n{body}")
    };
    let length = format!("Content-Length: {}", chunked.len());
    let cases = [
        with(&[&length, "Transfer-Encoding: chunked"], &chunked),
        with(&["Transfer-Encoding: chunked", &length], &chunked),
        with(&["Content-Length: 5", "Transfer-Encoding: chunked"], &chunked),
        with(&["Transfer-Encoding: chunked", "Transfer-Encoding: identity", &length], &chunked),
        with(&["Transfer-Encoding: identity", &length], &chunked),
        with(&["Transfer-Encoding: identity, chunked", &length], &chunked),
        with(&["Transfer-Encoding: chunked, identity"], &chunked),
        with(&["Transfer-Encoding: xchunked", &length], &chunked),
        with(&["Transfer-Encoding : chunked", &length], &chunked),
        with(&["Transfer-Encoding:\u{b}chunked", &length], &chunked),
        with(&[" Transfer-Encoding: chunked", &length], &chunked),
        with(&["X: y\n Transfer-Encoding: chunked", &length], &chunked),
        with(&["Content-Length: 0", &length], &chunked),
        with(&[&length, "Content-Length: 0"], &chunked),
        with(&[&format!("{length}, {}", chunked.len())], &chunked),
        with(&["Transfer-Encoding: chunked"], &format!("2;x=\n\r\n{{}}\r\n0\r\n\r\n{smuggled}")),
        with(&["Transfer-Encoding: chunked"], &format!("-1\r\n{{}}\r\n0\r\n\r\n{smuggled}")),
        with(&["Transfer-Encoding: chunked"], &format!("0x2\r\n{{}}\r\n0\r\n\r\n{smuggled}")),
        with(&["Transfer-Encoding: chunked"], &format!("FFFFFFFFFFFFFFFFF\r\n{{}}\r\n0\r\n\r\n{smuggled}")),
        with(&["Transfer-Encoding: chunked"], &format!("2\n{{}}\n0\n\n{smuggled}")),
    ];
    for case in &cases {
        let mut wire = Wire::connect(vault.address());
        wire.send(case);
        wire.finish();
        let answers: Vec<Answer> = std::iter::from_fn(|| wire.answer()).collect();
        let head = case.split("\r\n\r\n").next().unwrap();
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(
            statuses.len() <= 1 && statuses.iter().all(|status| matches!(status, 400 | 411 | 413 | 501)),
            "{head}: {statuses:?}"
        );
    }
    assert_eq!(session.ids(), [&*id], "the smuggled request was carried out");
    // An unread body is not interpreted as a request.
    let body = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3000);
    for refused in [
        request("POST", "/v1/login", &["Content-Type: application/json"], body.as_bytes()),
        request("PATCH", "/v1/organization-vault", &[], body.as_bytes()),
    ] {
        let mut wire = Wire::connect(vault.address());
        wire.send(refused);
        wire.finish();
        let statuses: Vec<u16> = std::iter::from_fn(|| wire.answer()).map(|answer| answer.status).collect();
        assert!(
            statuses.iter().all(|&status| matches!(status, 401 | 413 | 415)) && statuses.len() <= 1,
            "{statuses:?}"
        );
    }
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let vault = Vault::start(Database::Sqlite);
    let mut wire = Wire::connect(vault.address());
    let not_found = request("GET", "/nonsense", &[], b"");
    let login = request("POST", "/v1/login", &["Content-Type: application/json"], b"{}");
    let live = request("GET", "/livez", &[], b"");
    wire.send([not_found, login, live.clone(), live].concat());
    let statuses = [0; 4].map(|_| wire.answer().unwrap().status);
    assert_eq!(statuses, [404, 400, 200, 200]);
}

#[test]
fn a85_forwarded_headers_are_ignored() {
    let vault = Vault::start(Database::Postgres);
    let (client, account) = (vault.client(), vault.admin());
    let spoofs = [
        "x-forwarded-for",
        "forwarded",
        "x-real-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "x-client-ip",
        "x-forwarded",
    ];
    let before = vault.password_evaluations();
    let from = |number: usize, password: &str| {
        let body = json!({"email": account.email, "password": password, "passcode": account.recovery_code()});
        let mut call = client.request("POST", "/v1/login").json(&body);
        for name in spoofs {
            let address = format!("203.0.{number}.7");
            call = call.header(name, &if name == "forwarded" { format!("for={address}") } else { address });
        }
        call.send()
    };
    for number in 0..6 {
        from(number, "not the password").problem("invalid-login");
    }
    from(99, &account.password).problem("invalid-login");
    assert_eq!(vault.password_evaluations() - before, 5, "one network, whatever the headers say");

    let other = vault.admin();
    let answer =
        client.request("POST", "/v1/login").header("x-forwarded-for", "203.0.113.7").json(&other.sound_login()).send();
    let session = Session::new(&client, &answer.expect(200));
    let network = Sql::of(&vault).value(&format!("SELECT network FROM sessions WHERE account_id = '{}'", other.id));
    assert_eq!(network, "127.0.0.0/24", "the stored network");
    for number in 0..2 {
        session.save(&small("a", number));
    }
    let evil = |call: Call<'_>| {
        let call = call
            .header("x-forwarded-host", "evil.example")
            .header("x-forwarded-proto", "https")
            .header("x-forwarded-prefix", "/evil");
        let answer = call.header("forwarded", "host=evil.example;proto=https").header("x-original-url", "/evil").send();
        assert!(!format!("{:?}{}", answer.headers, answer.text()).contains("evil"));
        answer
    };
    let list = evil(session.call("GET", "/v1/organization-vault?limit=1"));
    assert!(list.header("link").unwrap().starts_with("</v1/organization-vault?"));
    let saved = evil(session.call("PATCH", "/v1/organization-vault").json(&s3().request));
    assert!(saved.header("location").unwrap().starts_with("/v1/organization-vault/"));
}

#[test]
fn a86_only_the_method_in_the_line_counts() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let id = session.save(&s3().request);
    let one = format!("/v1/organization-vault/{id}");
    let authorization = format!("Authorization: Bearer {}", session.token);
    let places = [
        ("/v1/login", "POST"),
        ("/v1/logout", "POST"),
        ("/v1/organization-vault", "GET, HEAD, PATCH"),
        (&*one, "GET, HEAD, PATCH, DELETE"),
        ("/livez", "GET, HEAD"),
        ("/readyz", "GET, HEAD"),
    ];
    let methods = [
        "TRACE", "PROPFIND", "OPTIONS", "PUT", "POST", "GET", "HEAD", "PATCH", "DELETE", "get", "Post", "QUERY", "X",
        "MKCOL", "DEBUG",
    ];
    for (path, allowed) in places {
        for method in methods {
            if allowed.split(", ").any(|name| name == method) {
                continue;
            }
            let mut wire = Wire::connect(vault.address());
            wire.send(request(method, path, &[&authorization, "X-Canary: h7Qz-reflected"], b""));
            let answer = if method == "HEAD" { wire.head() } else { wire.answer() }.unwrap();
            assert!(matches!(answer.status, 405 | 501), "{method} {path}: {}", answer.status);
            assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
            assert!(!answer.text().contains("h7Qz"), "{method} {path} reflects the request");
            answer.check_common();
        }
        if allowed.contains("HEAD") {
            let [get, head] = ["GET", "HEAD"].map(|method| session.call(method, path).send());
            assert!(head.body.is_empty());
            let of = |answer: &Answer| {
                (
                    answer.status,
                    answer.header("content-length").map(str::to_owned),
                    answer.header("content-type").map(str::to_owned),
                )
            };
            assert_eq!(of(&get), of(&head), "{path}");
        }
    }
    for raw in [
        "CONNECT vault.example:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let answer = Wire::exchange(vault.address(), raw).unwrap();
        assert!(matches!(answer.status, 400 | 404 | 405 | 501), "{raw}: {}", answer.status);
    }
    for name in ["x-http-method-override", "x-http-method", "x-method-override", "_method"] {
        session.call("GET", &one).header(name, "DELETE").send().expect(200);
    }
    session.call("GET", &format!("{one}?_method=DELETE")).send().problem("malformed-request");
    assert_eq!(session.ids(), [id]);
}

#[test]
fn a88_every_response_has_browser_protection_headers() {
    // The headers are checked for every response of all tests. This test adds one response of each status.
    let vault = Vault::start_with(Database::Sqlite, &["--max-credentials", "1"]);
    let client = vault.client();
    let session = vault.admin_session();
    let id = session.save(&s3().request);
    let viewer = vault.account("Acme", "viewer").log_in(&client);
    let answers = [
        session.show(&id),
        session.try_save(&s3().request),
        session.try_save(&json!({})),
        client.get("/v1/organization-vault").send(),
        viewer.try_save(&s3().request),
        client.get("/nonsense").send(),
        client.request("PUT", "/v1/login").send(),
        session.call("PATCH", "/v1/organization-vault").header("if-match", "*").json(&s3().request).send(),
        client.request("POST", "/v1/login").json_text(" ".repeat(65_537)).send(),
        client.request("POST", "/v1/login").body("{}").send(),
        session.delete(&id),
        vault.server().admin_client().get("/metrics").send(),
        vault.server().admin_client().get("/nonsense").send(),
        vault.server().admin_client().request("POST", "/metrics").send(),
    ];
    let statuses = answers.each_ref().map(|answer| answer.status);
    assert_eq!(statuses, [200, 422, 400, 401, 403, 404, 405, 412, 413, 415, 204, 200, 404, 405]);
    let ids: HashSet<_> = answers.iter().map(|answer| answer.header("x-request-id").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), answers.len(), "a request id is used once");
    let answer = client.get("/livez").header("x-request-id", "chosen-by-client").send();
    assert_ne!(answer.header("x-request-id"), Some("chosen-by-client"));
}

#[test]
fn a89_other_origins_are_refused() {
    let vault = Vault::start(Database::Sqlite);
    let (session, client) = (vault.admin_session(), vault.client());
    for origin in ["https://evil.example", "null", "http://127.0.0.1:8080", "https://vault.example.evil.example"] {
        for path in ["/v1/login", "/v1/organization-vault"] {
            let preflight = client.request("OPTIONS", path).header("origin", origin);
            let preflight = preflight.header("access-control-request-method", "PATCH");
            let answer = preflight.header("access-control-request-headers", "authorization, content-type").send();
            let answer = answer.problem("method-not-allowed");
            assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{answer:?}");
        }
        let answer = session.call("GET", "/v1/organization-vault").header("origin", origin).send().expect(200);
        assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{answer:?}");
    }
}

#[test]
fn upgrades_are_refused_and_h2c_is_ignored() {
    let vault = Vault::start(Database::Sqlite);
    let ask = |headers: &[&str]| Wire::exchange(vault.address(), request("GET", "/livez", headers, b"")).unwrap();
    let plain =
        ask(&["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"]);
    assert_eq!(plain.status, 200);
    for upgrade in ["websocket", "h2c, websocket", "TLS/1.0", "HTTP/2.0"] {
        let answer = ask(&["Connection: Upgrade", &format!("Upgrade: {upgrade}")]);
        answer.check_common();
        answer.problem("malformed-request");
    }
}

#[test]
fn a92_request_is_one_log_line() {
    for format in ["json", "text"] {
        let mut vault = Vault::start_with(Database::Sqlite, &["--log-level", "debug", "--log-format", format]);
        let forged = "2026-11-20T12:00:00Z ERROR forged";
        let agents = [
            format!("a\u{1b}[31m{forged}"),
            format!("a\u{2028}{forged}"),
            "u".repeat(8 * 1024),
            "\u{9b}31m".to_owned(),
            format!("a\\n{forged}"),
        ];
        for agent in &agents {
            let headers = [
                &*format!("User-Agent: {agent}"),
                &format!("X-Request-Id: {agent}"),
                &format!("X-Forwarded-For: {agent}"),
            ];
            let target = format!("/nonsense%0d%0a{}?a=%0a%1b[31m", forged.replace(' ', "%20"));
            let _ = Wire::exchange(vault.address(), request("GET", &target, &headers, b""));
            let _ = Wire::exchange(vault.address(), request("G\u{1b}[31mT", "/", &headers, b""));
            let email = format!("x\r\n{agent}@example.com");
            vault
                .client()
                .log_in(&json!({"email": email, "password": agent, "passcode": agent}))
                .problem("invalid-login");
        }
        vault.stop();
        let log = vault.log();
        assert!(!log.is_empty());
        let escaped = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
        assert!(!log.contains(escaped), "a control character in the log: {log:?}");
        for line in log.lines() {
            assert!(!line.starts_with(forged), "{line}");
            assert!(line.len() < 4096, "a line of {} bytes", line.len());
            if format == "json" {
                assert!(serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line.is_object()), "{line}");
            }
        }
    }
}
