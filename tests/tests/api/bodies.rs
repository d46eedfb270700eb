//! Request bodies: limits, media type and form.

use super::app::{App, JSON, integrate, s3, text};
use super::tokens::{line, sound_body};
use serde_json::{Value, json};
use vault_http::{Route, activation_routes, routes};
use vault_tests::samples::{every_type, gcs};
use vault_tests::wire::{Wire, request};
use vault_tests::{Answer, Session};

const LOGIN: &str = "POST /v1/login";
const SAVE: &str = "PATCH /v1/organization-vault";

/// Every operation with a body, with a sound one.
struct Operations {
    app: App,
    admin: Session,
    operations: Vec<(String, std::net::SocketAddr, String, Value)>,
}

impl Operations {
    fn start() -> Self {
        let app = App::start();
        let (admin, listener) = (app.admin(), app.listener());
        let created = integrate(&admin, "nightly", &["a"]);
        let receiver = admin.post("/receivers", &json!({"kind": "webhook", "url": "https://hooks.example"}));
        let ids = [
            ("organization-vault", admin.save(&s3("a", "b"))),
            ("accounts", app.account("viewer").id),
            ("integrations", text(&created["id"]).to_owned()),
            ("receivers", text(&receiver.expect(201).json()["id"]).to_owned()),
        ];
        let line = |route: &Route| {
            let id = ids.iter().find(|(collection, _)| route.template.contains(collection));
            line(route, id.map_or("x", |(_, id)| id))
        };
        let job = listener.job_of(&created);
        let public = routes().map(|route| (route, app.address, admin.header()));
        let all = public.chain(activation_routes().map(|route| (route, listener.address(), job.header())));
        let operations =
            all.filter_map(|(route, address, header)| Some((line(&route), address, header, sound_body(&route)?)));
        let operations: Vec<_> = operations.collect();
        assert_eq!(operations.len(), 27);
        Self { app, admin, operations }
    }

    /// Sends a request for each operation, and asserts that nothing was changed.
    fn each(&self, act: impl Fn(&str, &dyn Fn(&[&str], &str) -> Answer, &Value)) {
        let state = || {
            ["/accounts", "/integrations", "/organization-vault", "/receivers"].map(|path| self.admin.get(path).json())
        };
        let before = state();
        for (line, address, header, body) in &self.operations {
            let send = |headers: &[&str], body: &str| {
                let mut wire = Wire::connect(*address);
                wire.send(request(line, &[&[&**header], headers].concat(), body));
                let answer = wire.answer().unwrap_or_else(|| panic!("no answer to {line}"));
                answer.check_common();
                answer
            };
            act(line, &send, body);
        }
        assert_eq!(state(), before);
    }
}

#[test]
fn a80_body_is_plain_json() {
    let api = Operations::start();
    api.each(|line, send, body| {
        let body = body.to_string();
        for headers in [
            &[][..],
            &["Content-Type:"],
            &["Content-Type: text/plain"],
            &["Content-Type: text/json"],
            &["Content-Type: application/x-www-form-urlencoded"],
            &["Content-Type: multipart/form-data; boundary=x"],
            &["Content-Type: application/json; charset=utf-7"],
            &["Content-Type: application/json; charset=utf-16"],
            &["Content-Type: application/json; charset=utf-8; boundary=x"],
            &["Content-Type: application/json, text/plain"],
            &["Content-Type: application/problem+json"],
            &["Content-Type: application/jsonx"],
            &["Content-Type: text/plain", JSON],
            &[JSON, JSON],
            &[JSON, "Content-Encoding: gzip"],
            &[JSON, "Content-Encoding: br"],
            &[JSON, "Content-Encoding: identity"],
            &[JSON, "Content-Encoding: gzip, gzip"],
            &[JSON, "Content-Encoding:"],
        ] {
            send(headers, &body).problem("unsupported-media-type");
        }
        let merge = ["Content-Type: application/merge-patch+json"];
        if !line.starts_with("PATCH /v1/organization-vault/") {
            send(&merge, &body).problem("unsupported-media-type");
        }
    });
    for accepted in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/json ; charset=\"utf-8\"",
    ] {
        let headers = [&*api.admin.header(), &format!("Content-Type: {accepted}")];
        api.app.send(SAVE, &headers, s3("a", "b").to_string()).expect(201);
    }
}

#[test]
fn duplicate_members_are_refused_by_name() {
    let api = Operations::start();
    let refused = |answer: Answer, fields: &[(&str, &str)]| {
        let fields: Vec<_> = fields.iter().map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned())).collect();
        assert_eq!(answer.problem("malformed-request").refused_fields(), fields);
    };
    api.each(|_, send, body| {
        let text = body.to_string();
        for (name, value) in body.as_object().unwrap() {
            let (rest, pointer) = (&text[1..], format!("/{name}"));
            refused(send(&[JSON], &format!("{{\"{name}\":{value},{rest}")), &[(&pointer, "duplicate")]);
            // The same name with an escape sequence.
            let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
            send(&[JSON], &format!("{{\"{escaped}\":{value},{rest}")).problem("malformed-request");
        }
        let unknown = format!("{{\"colour\":\"mauve\",{}", &text[1..]);
        refused(send(&[JSON], &unknown), &[("/colour", "unknown")]);
        send(&[JSON], "[]").refuses(400, &[""]);
        send(&[JSON], "{").problem("malformed-request");
        send(&[JSON], &" ".repeat(64 * 1024 + 1)).problem("too-large");
    });
    for sample in every_type() {
        let text = sample.request.to_string();
        for name in sample.request["data"].as_object().unwrap().keys() {
            let twice = text.replacen("\"data\":{", &format!("\"data\":{{\"{name}\":\"other\","), 1);
            let answer = api.app.send(SAVE, &[&api.admin.header(), JSON], twice).problem("malformed-request");
            assert!(answer.refused_fields().contains(&(format!("/data/{name}"), "duplicate".to_owned())), "{name}");
        }
    }
}

/// Sends the same body to a login and to a save.
fn to_both(app: &App, header: &str, body: impl AsRef<[u8]>) -> [Answer; 2] {
    [LOGIN, SAVE].map(|line| app.send(line, &[header, JSON], body.as_ref()))
}

#[test]
fn a75_body_is_bounded() {
    let app = App::start();
    let header = app.editor().header();
    for answer in to_both(&app, &header, vec![b' '; 65_537]) {
        answer.problem("too-large");
    }
    for answer in to_both(&app, &header, vec![b' '; 65_536]) {
        answer.problem("malformed-request");
    }
    let refused = |wire: &mut Wire| {
        let answer = wire.answer().unwrap();
        answer.check_common();
        answer.problem("too-large");
        assert!(wire.ends(), "following requests could not be distinguished from the body");
    };
    for line in [LOGIN, SAVE] {
        for length in ["65537", "1099511627776", "18446744073709551615"] {
            // Rejected immediately, because no byte of the body is sent.
            let mut wire = app.wire();
            wire.send(request(line, &[&header, JSON, &format!("Content-Length: {length}")], ""));
            refused(&mut wire);
        }
        for chunk in [1, 1000, 60_000] {
            let mut wire = app.wire();
            wire.send(request(line, &[&header, JSON, "Transfer-Encoding: chunked"], ""));
            let piece = format!("{chunk:x}\r\n{}\r\n", " ".repeat(chunk));
            for _ in 0..65_536 / chunk + 1 {
                wire.send(&piece);
            }
            refused(&mut wire);
        }
    }
    // Within the limit, byte by byte, and the connection stays open.
    let mut wire = app.wire();
    for _ in 0..2 {
        wire.send(request(SAVE, &[&header, JSON, "Transfer-Encoding: chunked"], ""));
        for byte in s3("a", "b").to_string().bytes() {
            wire.send(format!("1\r\n{}\r\n", char::from(byte)));
        }
        assert_eq!(wire.exchange("0\r\n\r\n").status, 201);
    }
}

#[test]
fn a76_body_is_shallow() {
    let app = App::start();
    let editor = app.editor();
    for deep in [
        "[".repeat(65_000),
        "{\"a\":".repeat(13_000),
        "[{\"a\":".repeat(10_000),
        format!("{}{}", "[".repeat(32_000), "]".repeat(32_000)),
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
        format!("{{\"data\":{}{}}}", "[".repeat(17), "]".repeat(17)),
    ] {
        for answer in to_both(&app, &editor.header(), deep) {
            answer.problem("malformed-request");
        }
    }
    // A key file is a nested string, which does not increase the nesting depth.
    let mut body = gcs().request;
    body["data"]["service_account_key"] = json!("[".repeat(16_000));
    editor.try_save(&body).problem("refused-value");
}

#[test]
fn a77_body_costs_little() {
    let app = App::start();
    let header = app.editor().header();
    let names: Vec<String> = (0..6_000).map(|number| format!("\"{number:x}\":0")).collect();
    let mut bodies = vec![
        format!("{{{}}}", names.join(",")),
        format!("{{{}}}", vec!["\"a\":0"; 10_000].join(",")),
        format!("[{}0]", "0,".repeat(32_000)),
        format!("{{\"{}\":0}}", "k".repeat(65_000)),
        format!("{{\"{}\":0}}", "\\u0041".repeat(10_000)),
        format!("{{\"ttl\":{}}}", "9".repeat(60_000)),
        format!("{{\"ttl\":0.{}}}", "9".repeat(60_000)),
        format!("{{\"ttl\":1{}e-60000}}", "0".repeat(60_000)),
        format!("\"{}\"", "s".repeat(65_000)),
    ];
    let numbers = ["1e400", "-1e400", "1e-400", "01", "+1", "0x3c", "NaN", "Infinity", "1_000"];
    bodies.extend(numbers.map(|number| format!("{{\"ttl\":{number}}}")));
    for body in &bodies {
        for answer in to_both(&app, &header, body) {
            assert!(matches!(answer.status, 400 | 422), "{body:.60}: {}", answer.status);
            assert!(answer.body.len() < 64 * 1024, "an answer longer than the request");
        }
    }
    let near = ["", " ", "{", "}", "{}}", "{},", "{\"a\"}", "{'a':1}", "{a:1}", "{\"a\":1,}", "[1,]", "// c\n{}"];
    for body in near.into_iter().chain(["{}\u{0}", "nul", "{}{}", "\"", "{\"a\":\"\\x\"}", "{\"a\":\"\t\"}"]) {
        for answer in to_both(&app, &header, body) {
            answer.problem("malformed-request");
        }
    }
}

/// Returns every location of a string in a value.
fn string_places(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::String(_) => vec![at.to_owned()],
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| string_places(value, &format!("{at}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a79_invalid_text_is_refused() {
    let app = App::start();
    let editor = app.editor();
    // The bytes between the quotation marks.
    let flawed: [&[u8]; 14] = [
        b"\xff",
        b"a\xc3(",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\\ud800",
        b"\\udc00\\ud800",
        b"\\ud83d\\u0041",
        b"\\u00",
        b"\\uZZZZ",
        b"a\\u0000b",
        b"\\u0000",
        b"a\x00b",
    ];
    let login = json!({"email": "a@x.io", "password": "b", "passcode": "c"});
    let saves = every_type().into_iter().map(|sample| (SAVE, sample.request));
    for (line, body) in saves.chain([(LOGIN, login)]) {
        for place in string_places(&body, "") {
            for text in flawed {
                let mut marked = body.clone();
                *marked.pointer_mut(&place).unwrap() = json!("MARK");
                let whole = marked.to_string();
                let (before, after) = whole.split_once("MARK").unwrap();
                let sent = [before.as_bytes(), text, after.as_bytes()].concat();
                let status = app.send(line, &[&editor.header(), JSON], sent).status;
                // Unknown members of a key file that is an object, and logins, may contain any valid text.
                let valid = [&b"\\u0000"[..], b"a\\u0000b"].contains(&text);
                let free = valid && (line == LOGIN || place.starts_with("/data/service_account_key/"));
                let expected = matches!(status, 400 | 422) || (free && matches!(status, 201 | 401));
                assert!(expected, "{place} {}: {status}", text.escape_ascii());
            }
        }
    }
    let body = s3("a", "b").to_string();
    let utf16: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for whole in [
        [b"\xef\xbb\xbf", body.as_bytes()].concat(),
        [b"\xff\xfe", &utf16[..]].concat(),
        utf16,
        body.as_bytes()[..100].to_vec(),
    ] {
        app.send(SAVE, &[&editor.header(), JSON], whole).problem("malformed-request");
    }
    let names =
        ["namespace=%00", "namespace=%ff", "namespace=a%00b", "type=%00", "cursor=%00", "limit=%00", "%00=a", "%ff"];
    for query in names.into_iter().chain(["namespace=%ed%a0%80"]) {
        let answer = app.send(&format!("GET /v1/organization-vault?{query}"), &[&editor.header()], "");
        assert!(matches!(answer.status, 400 | 422), "{query}: {}", answer.status);
    }
    for key in ["a\u{0}", "\u{e4}", "a b"] {
        let headers = [JSON, &editor.header(), &format!("Idempotency-Key: {key}")];
        let answer = Wire::once(app.address, request(SAVE, &headers, &body));
        assert!(answer.is_none_or(|answer| answer.status == 400), "{key:?}");
    }
}

#[test]
fn unexpected_body_is_not_read_and_closes_the_connection() {
    let app = App::start();
    let admin = app.admin();
    for (line, length, status) in [
        ("GET /v1/organization-vault", 40_000, 200),
        ("GET /v1/organization-vault", 64 * 1024 + 1, 200),
        ("DELETE /v1/organization-vault/0193aaaa-0000-7000-8000-000000000000", 10, 404),
        ("POST /v1/logout", 7, 204),
    ] {
        let mut wire = app.wire();
        let answer = wire.exchange(request(line, &[&admin.header()], "x".repeat(length)));
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{line}");
        assert!(wire.is_closed(), "{line}");
    }
}
