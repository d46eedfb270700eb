//! Attacks with request bodies. These requests do not reach the database, so the embedded one is sufficient.

use serde_json::json;
use vault_tests::samples::{every_type, gcs, s3};
use vault_tests::wire::{Wire, request};
use vault_tests::{Answer, Database, Session, Vault};

const JSON: &str = "Content-Type: application/json";

/// Sends the same body to a login and, with a token, to a save.
fn to_both(vault: &Vault, session: &Session, headers: &[&str], body: &[u8]) -> [Answer; 2] {
    let authorization = format!("Authorization: Bearer {}", session.token);
    [("POST", "/v1/login"), ("PATCH", "/v1/organization-vault")].map(|(method, path)| {
        let answer =
            Wire::exchange(vault.address(), request(method, path, &[&[&*authorization], headers].concat(), body))
                .unwrap();
        answer.check_common();
        answer
    })
}

#[test]
fn a75_body_is_bounded() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let authorization = format!("Authorization: Bearer {}", session.token);
    for answer in to_both(&vault, &session, &[JSON], &[b' '; 65_537]) {
        answer.problem("too-large");
    }
    for answer in to_both(&vault, &session, &[JSON], &[b' '; 65_536]) {
        answer.problem("malformed-request");
    }
    let before = vault.server().resident_bytes();
    let mut refused = Vec::new();
    for (method, path) in [("POST", "/v1/login"), ("PATCH", "/v1/organization-vault")] {
        for length in ["65537", "1099511627776", "18446744073709551615"] {
            // Rejected immediately, because no byte of the body is sent.
            let announced = format!("Content-Length: {length}");
            let mut wire = Wire::connect(vault.address());
            wire.send(request(method, path, &[&authorization, JSON, &announced], b""));
            let answer = wire.answer().unwrap();
            answer.check_common();
            answer.problem("too-large");
            refused.push(wire);
        }
        for chunk in [1, 1000, 60_000] {
            let mut wire = Wire::connect(vault.address());
            wire.send(request(method, path, &[&authorization, JSON, "Transfer-Encoding: chunked"], b""));
            let piece = format!("{chunk:x}\r\n{}\r\n", " ".repeat(chunk));
            for _ in 0..65_536 / chunk + 1 {
                wire.send(&piece);
            }
            let answer = wire.answer().unwrap();
            answer.check_common();
            answer.problem("too-large");
            refused.push(wire);
        }
    }
    for mut wire in refused {
        assert!(wire.ends(), "following requests could not be distinguished from the body");
    }
    let grown = vault.server().resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
    // Within the limit, also in chunks.
    let body = s3().request.to_string();
    let mut wire = Wire::connect(vault.address());
    wire.send(request("PATCH", "/v1/organization-vault", &[&authorization, JSON, "Transfer-Encoding: chunked"], b""));
    for piece in body.as_bytes().chunks(7) {
        wire.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    wire.send("0\r\n\r\n");
    assert_eq!(wire.answer().unwrap().status, 201);
}

#[test]
fn a76_body_is_shallow() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let deep = [
        "[".repeat(65_000),
        "{\"a\":".repeat(13_000),
        "[{\"a\":".repeat(10_000),
        format!("{}{}", "[".repeat(32_000), "]".repeat(32_000)),
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
        format!("{{\"data\":{}{}}}", "[".repeat(17), "]".repeat(17)),
    ];
    for body in deep {
        for answer in to_both(&vault, &session, &[JSON], body.as_bytes()) {
            answer.problem("malformed-request");
        }
    }
    for answer in to_both(&vault, &session, &[JSON], "[".repeat(100_000).as_bytes()) {
        answer.problem("too-large");
    }
    // A key file is a nested string, which does not increase the nesting depth.
    let mut body = gcs().request;
    body["data"]["service_account_key"] = json!("[".repeat(16_000));
    session.try_save(&body).problem("refused-value");
    assert!(session.is_live());
}

#[test]
fn a77_body_costs_little() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let names: Vec<String> = (0..6_000).map(|number| format!("\"{number:x}\":0")).collect();
    let same: Vec<&str> = vec!["\"a\":0"; 10_000];
    let bodies = [
        format!("{{{}}}", names.join(",")),
        format!("{{{}}}", same.join(",")),
        format!("[{}0]", "0,".repeat(32_000)),
        format!("{{\"{}\":0}}", "k".repeat(65_000)),
        format!("{{\"{}\":0}}", "\\u0041".repeat(10_000)),
        format!("{{\"ttl\":{}}}", "9".repeat(60_000)),
        format!("{{\"ttl\":0.{}}}", "9".repeat(60_000)),
        format!("{{\"ttl\":1{}e-60000}}", "0".repeat(60_000)),
        "{\"ttl\":1e400}".to_owned(),
        "{\"ttl\":-1e400}".to_owned(),
        "{\"ttl\":1e-400}".to_owned(),
        "{\"ttl\":01}".to_owned(),
        "{\"ttl\":+1}".to_owned(),
        "{\"ttl\":0x3c}".to_owned(),
        "{\"ttl\":NaN}".to_owned(),
        "{\"ttl\":Infinity}".to_owned(),
        "{\"ttl\":1_000}".to_owned(),
        format!("\"{}\"", "s".repeat(65_000)),
    ];
    for body in &bodies {
        for answer in to_both(&vault, &session, &[JSON], body.as_bytes()) {
            assert!(matches!(answer.status, 400 | 422), "{:.60}: {}", body, answer.status);
            assert!(answer.body.len() < 64 * 1024, "an answer longer than the request");
        }
    }
    for body in [
        "",
        " ",
        "{",
        "}",
        "{}}",
        "{},",
        "{\"a\"}",
        "{'a':1}",
        "{a:1}",
        "{\"a\":1,}",
        "[1,]",
        "// c\n{}",
        "{}\u{0}",
        "nul",
        "{}{}",
        "\"",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\t\"}",
    ] {
        for answer in to_both(&vault, &session, &[JSON], body.as_bytes()) {
            answer.problem("malformed-request");
        }
    }
}

#[test]
fn duplicate_members_are_refused_by_name() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let account = vault.admin();
    let body = account.sound_login().to_string();
    for name in ["email", "password", "passcode"] {
        for twice in [
            format!("{},\"{name}\":\"other\"}}", &body[..body.len() - 1]),
            format!("{{\"{name}\":\"other\",{}", &body[1..]),
        ] {
            let answer =
                vault.client().request("POST", "/v1/login").json_text(twice).send().problem("malformed-request");
            assert_eq!(answer.refused_fields(), [(format!("/{name}"), "duplicate".to_owned())]);
        }
        // The same name with an escape sequence.
        let escaped =
            format!("{},\"\\u{:04x}{}\":\"other\"}}", &body[..body.len() - 1], name.as_bytes()[0], &name[1..]);
        vault.client().request("POST", "/v1/login").json_text(escaped).send().problem("malformed-request");
    }
    for sample in every_type() {
        let text = sample.request.to_string();
        for name in sample.request["data"].as_object().unwrap().keys() {
            let twice = text.replacen("\"data\":{", &format!("\"data\":{{\"{name}\":\"other\","), 1);
            let answer =
                session.call("PATCH", "/v1/organization-vault").json_text(twice).send().problem("malformed-request");
            assert!(answer.refused_fields().contains(&(format!("/data/{name}"), "duplicate".to_owned())), "{name}");
        }
    }
    assert!(session.list().is_empty());
}

#[test]
fn a80_body_is_plain_json() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let body = s3().request.to_string();
    let refused: [&[&str]; 24] = [
        &[],
        &["Content-Type:"],
        &["Content-Type: text/plain"],
        &["Content-Type: text/json"],
        &["Content-Type: application/x-www-form-urlencoded"],
        &["Content-Type: multipart/form-data; boundary=x"],
        &["Content-Type: application/json; charset=utf-7"],
        &["Content-Type: application/json; charset=utf-16"],
        &["Content-Type: application/json; charset=iso-8859-1"],
        &["Content-Type: application/json; charset=utf-8; boundary=x"],
        &["Content-Type: application/json; boundary=x"],
        &["Content-Type: application/json, text/plain"],
        &["Content-Type: application/problem+json"],
        &["Content-Type: application/merge-patch+json"],
        &["Content-Type: application/jsonx"],
        &["Content-Type: text/plain", JSON],
        &[JSON, JSON],
        &[JSON, "Content-Encoding: gzip"],
        &[JSON, "Content-Encoding: br"],
        &[JSON, "Content-Encoding: zstd"],
        &[JSON, "Content-Encoding: deflate"],
        &[JSON, "Content-Encoding: identity"],
        &[JSON, "Content-Encoding: gzip, gzip"],
        &[JSON, "Content-Encoding:"],
    ];
    for headers in refused {
        for answer in to_both(&vault, &session, headers, body.as_bytes()) {
            answer.problem("unsupported-media-type");
        }
    }
    assert!(session.list().is_empty());
    for accepted in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/json ; charset=\"utf-8\"",
    ] {
        let [_, saved] = to_both(&vault, &session, &[&format!("Content-Type: {accepted}")], body.as_bytes());
        assert_eq!(saved.status, 201, "{accepted}");
    }
}
