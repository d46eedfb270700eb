//! Refused content: every error names its field and repeats no value.

use super::app::{App, JSON, integrate, s3};
use super::tokens::sound_body;
use serde_json::{Map, Value, json};
use vault_http::routes;
use vault_tests::samples::{azure_identity, direct_link, gcs, s3 as s3_sample};

/// Part of invalid values. No response may contain it.
const MARK: &str = "h7Qz";

/// Replaces `<x*70>` by seventy times `x`.
fn repeated(text: &str) -> String {
    let mut parts = text.split('<');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let repeat = part.split_once('>').and_then(|(repeat, rest)| {
            let (text, count) = repeat.split_once('*')?;
            Some(text.repeat(count.parse().ok()?) + rest)
        });
        whole += &repeat.unwrap_or_else(|| format!("<{part}"));
    }
    whole
}

/// Returns query and body of a row. `+ {…}` adds members to a sound body, and `+data {…}` to its data.
fn content(row: &str, line: &str) -> (String, String) {
    let ids = ["{account}", "{credential}", "{integration}"];
    let template = ids.iter().fold(line.replace(' ', " {base}"), |line, id| line.replace(id, "{id}"));
    let route = routes().find(|route| format!("{} {}", route.method, route.template) == template);
    let sound = || route.and_then(|route| sound_body(&route)).unwrap_or_default();
    if row.starts_with('?') {
        let body = sound();
        return (row.to_owned(), if body.is_null() { String::new() } else { body.to_string() });
    }
    let Some((place, more)) = row.strip_prefix('+').and_then(|row| row.split_once(' ')) else {
        return (String::new(), row.to_owned());
    };
    let mut body = sound();
    let more: Map<String, Value> = serde_json::from_str(more).unwrap_or_else(|error| panic!("{row}: {error}"));
    let members = if place.is_empty() { &mut body } else { &mut body[place] };
    members.as_object_mut().unwrap_or_else(|| panic!("{line} has no sound body")).extend(more);
    (String::new(), body.to_string())
}

#[test]
fn content_is_refused_as_in_table() {
    let app = App::start();
    let (admin, editor, viewer) = (app.admin(), app.editor(), app.viewer());
    let (account, credential) = (app.account("viewer"), admin.save(&s3("a", "b")));
    let listener = app.listener();
    let job = listener.job_of(&integrate(&admin, "nightly", &["a"]));
    let state = || {
        let lists = ["/accounts", "/integrations", "/organization-vault", "/namespaces", "/account/set-aside"];
        (lists.map(|path| admin.get(path).json()), editor.show(&credential).indistinct(), job.live())
    };
    let (before, mut lines, mut rows, mut is_row) = (state(), Vec::new(), 0, true);
    let mut failures = Vec::new();
    for row in include_str!("refusals.txt").lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let (first, rest) = row.split_once(' ').unwrap();
        if !first.starts_with('4') {
            if std::mem::take(&mut is_row) {
                lines.clear();
            }
            lines.push((first, rest));
            continue;
        }
        (is_row, rows) = (true, rows + 1);
        let (fields, row) = rest.split_once(' ').unwrap();
        let expected: Vec<_> = if fields == "-" { vec![""] } else { fields.split(',').collect() };
        for (caller, line) in &lines {
            let (method, path) = line.split_once(' ').unwrap();
            let path = path.replace("{account}", &account.id).replace("{credential}", &credential);
            let (query, body) = content(&repeated(row), line);
            let path = format!("/v1{}{query}", path.replace("{integration}", &job.id));
            let token = match *caller {
                "anyone" => String::new(),
                "job" => job.header(),
                "viewer" => viewer.header(),
                "editor" => editor.header(),
                _ => admin.header(),
            };
            let headers = [&*token, if body.is_empty() { "" } else { JSON }];
            let headers: Vec<&str> = headers.into_iter().filter(|header| !header.is_empty()).collect();
            let line = format!("{method} {path}");
            let answer =
                if *caller == "job" { listener.send(&line, &headers, &body) } else { app.send(&line, &headers, &body) };
            let fields: Vec<_> = answer.refused_fields().into_iter().map(|(pointer, _)| pointer).collect();
            let code = if first == "400" { "malformed-request" } else { "refused-value" };
            let is_right = answer.status.to_string() == first && answer.json()["code"] == code && fields == expected;
            if !is_right || answer.text().contains(MARK) {
                failures.push(format!("{first} {} {line} {row}: {}", expected.join(","), answer.text()));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(rows > 150, "{rows}");
    assert_eq!(state(), before, "a refused request changed something");
}

#[test]
fn invalid_secrets_are_refused_by_name() {
    let app = App::start();
    let editor = app.editor();
    let flawed = [
        ("", "blank"),
        (" ", "blank"),
        ("\t\r\n", "blank"),
        ("***", "masked"),
        ("••••••••", "masked"),
        ("<redacted>", "masked"),
        ("…h7Qz", "masked"),
        ("h7Qz************************h7Qz", "masked"),
        ("${h7Qz_SECRET}", "placeholder"),
        ("{{ h7Qz }}", "placeholder"),
        ("\"h7Qz0123456789abcdef\"", "surrounded"),
        ("'h7Qz0123456789abcdef'", "surrounded"),
        (" h7Qz0123456789abcdef", "surrounded"),
        ("h7Qz0123456789abcdef\n", "surrounded"),
        ("h7Qz0123\u{0}456789abcdef", "control-character"),
        ("h7Qz0123\n456789abcdef", "control-character"),
        ("h7Qz0123\u{1b}[31m456789abcdef", "control-character"),
    ];
    for (sample, pointer) in [
        (s3_sample(), "/data/secret_access_key"),
        (s3_sample(), "/data/session_token"),
        (azure_identity(), "/data/client_secret"),
        (azure_identity(), "/data/connection_string"),
        (gcs(), "/data/service_account_key"),
        (direct_link(), "/data/url"),
        (direct_link(), "/data/headers/Authorization"),
    ] {
        for (value, code) in flawed {
            let mut body = sample.request.clone();
            *body.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = json!(value);
            let answer = editor.try_save(&body).refuses(422, &[pointer]);
            assert!(!answer.text().contains(MARK), "a value was echoed: {}", answer.text());
            // A value with a specific format may be rejected for that instead. A key file may end with a line feed.
            let own_form = ["connection_string", "service_account_key", "url", "Authorization"]
                .iter()
                .any(|field| pointer.ends_with(field));
            let found = &answer.refused_fields()[0].1;
            assert!(found == code || own_form, "{pointer} {value:?}: {found} instead of {code}");
        }
    }
    assert!(editor.list().is_empty());
}

#[test]
fn limits_are_exact() {
    let app = App::start();
    let editor = app.editor();
    let secret = |length: usize| {
        let mut body = s3_sample().request;
        body["data"]["session_token"] = json!("a1".repeat(length.div_ceil(2))[..length]);
        editor.try_save(&body)
    };
    secret(16 * 1024).expect(201);
    assert_eq!(secret(16 * 1024 + 1).refused_fields(), [("/data/session_token".into(), "too-long".into())]);
    // White space at the end changes only the length of the body.
    let text = s3("a", "b").to_string();
    for (length, status) in [(64 * 1024, 201), (64 * 1024 + 1, 413)] {
        let padded = text.clone() + &" ".repeat(length - text.len());
        app.send("PATCH /v1/organization-vault", &[&editor.header(), JSON], padded).expect(status);
    }
}
