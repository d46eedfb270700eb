//! Rejected saves: every error names its field and contains no value.

use serde_json::{Value, json};
use vault_tests::samples::{azure_identity, direct_link, gcs, s3};
use vault_tests::{Database, Session, Vault};

/// Part of every invalid value. No response may contain it.
const MARK: &str = "h7Qz";

/// Saves and returns the rejected fields. Asserts that the response repeats nothing of the request.
#[track_caller]
fn refused(session: &Session, body: &Value, status: u16) -> Vec<(String, String)> {
    let answer = session.try_save(body).expect(status);
    assert!(!answer.text().contains(MARK), "a value was echoed: {}", answer.text());
    answer.refused_fields()
}

fn with(request: &Value, pointer: &str, value: Value) -> Value {
    let mut request = request.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    request.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().insert(name.to_owned(), value);
    request
}

#[test]
fn invalid_secrets_are_refused_by_name() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
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
    let fields = [
        (s3(), "/data/secret_access_key"),
        (s3(), "/data/session_token"),
        (azure_identity(), "/data/client_secret"),
        (azure_identity(), "/data/connection_string"),
        (gcs(), "/data/service_account_key"),
        (direct_link(), "/data/url"),
        (direct_link(), "/data/headers/Authorization"),
    ];
    for (sample, pointer) in &fields {
        for (value, code) in flawed {
            let fields = refused(&session, &with(&sample.request, pointer, json!(value)), 422);
            assert_eq!(fields.len(), 1, "{pointer} {value:?}: {fields:?}");
            assert_eq!(fields[0].0, *pointer, "{value:?}");
            // A value with a specific format may be rejected for that instead. A key file may end with a line feed.
            let own_form = ["connection_string", "service_account_key", "url", "Authorization"]
                .iter()
                .any(|f| pointer.ends_with(f));
            assert!(fields[0].1 == code || own_form, "{pointer} {value:?}: {fields:?} instead of {code}");
        }
    }
    assert_eq!(session.list(), [] as [Value; 0]);
}

#[test]
fn all_violations_are_named_together() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let body = json!({
        "type": "s3",
        "namespace": "-h7Qz",
        "data": {"access_key_id": "h7Qz with space", "secret_access_key": "***", "region": "h7Qz/", "endpoint": "ftp://h7Qz"},
    });
    // One format error among value errors makes it status 400, with all of them.
    let fields = refused(&session, &body, 400);
    let expected = [
        ("/data/access_key_id", "malformed"),
        ("/data/bucket", "required"),
        ("/data/endpoint", "malformed"),
        ("/data/region", "malformed"),
        ("/data/secret_access_key", "masked"),
        ("/namespace", "malformed"),
    ];
    assert_eq!(fields, expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned())));
    let fields = refused(&session, &with(&body, "/data/bucket", json!("sound")), 422);
    assert_eq!(fields.len(), 5, "{fields:?}");
}

#[test]
fn limits_are_exact() {
    let vault = Vault::start_with(Database::Sqlite, &["--max-credentials", "3"]);
    let session = vault.admin_session();
    let secret =
        |length: usize| with(&s3().request, "/data/session_token", json!("a1".repeat(length.div_ceil(2))[..length]));
    session.save(&secret(16 * 1024));
    assert_eq!(refused(&session, &secret(16 * 1024 + 1), 422), [("/data/session_token".into(), "too-long".into())]);

    // White space at the end changes only the length of the body.
    let padded = |length: usize| {
        let text = s3().request.to_string();
        let padding = " ".repeat(length - text.len());
        session.call("PATCH", "/v1/organization-vault").json_text(text + &padding).send()
    };
    padded(64 * 1024).expect(201);
    padded(64 * 1024 + 1).problem("too-large");

    let id = session.save(&s3().request);
    session.try_save(&s3().request).problem("limit-reached");
    session.delete(&id).expect(204);
    session.save(&s3().request);
    session.try_save(&s3().request).problem("limit-reached");
    assert_eq!(session.list().len(), 3);
}

#[test]
fn a94_save_only_creates() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    for value in ["*", "\"1\"", "W/\"1\"", "nonsense"] {
        let call = session.call("PATCH", "/v1/organization-vault").header("if-match", value);
        call.json(&s3().request).send().problem("precondition-failed");
    }
    assert_eq!(session.list(), [] as [Value; 0]);
}
