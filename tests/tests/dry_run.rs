//! Checks of a namespace: problems that they report before a job depends on it.

use serde_json::{Value, json};
use vault_testkit::stores::Moto;
use vault_tests::{ActivationListener, Database, Integration};

/// Flag that permits connections to storage on this host.
const LOCAL: &str = "--allow-egress=127.0.0.0/8";
const READER: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:ListBucket","s3:GetObject"],"Resource":"*"}]}"#;

/// Starts a storage server that enforces policies. Returns a valid credential for it.
fn moto() -> (Moto, Value) {
    let moto = Moto::start();
    moto.create_bucket("exports");
    moto.put("exports", "in/a.csv", b"1\n");
    let reader = moto.create_user("reader", READER);
    moto.evaluate();
    let data = json!({
        "access_key_id": reader.id, "secret_access_key": reader.secret, "bucket": "exports", "region": "us-east-1",
        "endpoint": moto.endpoint(), "path_style_access": true,
    });
    (moto, data)
}

fn with(data: &Value, member: &str, value: &str) -> Value {
    let mut data = data.clone();
    data[member] = value.into();
    data
}

/// Returns the checks of a report's only credential, as `name result reason`.
fn checks(report: &Value) -> Vec<String> {
    let word = |item: &Value, member: &str| item[member].as_str().unwrap_or_default().to_owned();
    let items = report["checks"].as_array().unwrap().iter();
    items
        .map(|item| {
            format!("{} {} {}", word(item, "check"), word(item, "result"), word(item, "reason")).trim().to_owned()
        })
        .collect()
}

#[test]
fn dry_run_reports_failing_credentials() {
    let (moto, sound) = moto();
    let (vault, activation_listener) = ActivationListener::open_with(Database::Sqlite, &[LOCAL]);
    let (session, client) = (vault.admin_session(), activation_listener.client());
    let integration = Integration::make(&vault, "import", &["checked/*"]);
    for (number, (data, usable, expected)) in [
        (sound.clone(), true, "authenticate passed"),
        (with(&sound, "access_key_id", "AKIAUNKNOWNUNKNOWN12"), false, "authenticate failed unknown-key"),
        (
            with(&sound, "secret_access_key", "not-the-one-that-was-issued"),
            false,
            "authenticate failed signature-mismatch",
        ),
        (with(&sound, "bucket", "not-created-bucket"), false, "authenticate failed bucket-missing"),
        (with(&sound, "endpoint", "http://127.0.0.1:1"), false, "authenticate failed unreachable"),
        (with(&sound, "endpoint", "http://169.254.169.254"), false, "authenticate failed blocked-egress"),
    ]
    .into_iter()
    .enumerate()
    {
        let namespace = format!("checked/{number}");
        session.save(&json!({"type": "s3", "namespace": namespace, "data": data}));
        let answer = integration.check(&client, &namespace, &["list", "read"]).expect(200);
        for secret in ["access_key_id", "secret_access_key"] {
            assert!(!answer.text().contains(data[secret].as_str().unwrap()), "{}", answer.text());
        }
        let report = answer.json();
        assert_eq!(report["usable"], usable, "{report}");
        assert!(checks(&report["credentials"][0]).iter().any(|check| check == expected), "{expected}: {report}");
        let run = integration
            .run(activation_listener, &["activate", "--check", "--namespace", &namespace, "--operation", "list"]);
        assert_eq!(run.status, Some(i32::from(!usable)), "{run:?}");
        assert!(run.stdout.contains(expected.rsplit(' ').next().unwrap()), "{run:?}");
    }
    let write = integration.check(&client, "checked/0", &["write"]).expect(200).json();
    assert!(checks(&write["credentials"][0]).contains(&"write failed denied".to_owned()), "{write}");
    assert_eq!(integration.live(&client).len(), 0, "a dry run activates nothing");
    moto.believe();
    assert!(!moto.list("exports").contains("orgvault-check"), "nothing is left in the bucket");
}
