//! Checks of a namespace: problems that they report before a job depends on it, and connections that they must not
//! make.

use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use vault_testkit::stores::Moto;
use vault_tests::{ActivationListener, Answer, Database, Integration, Session};

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

fn verify(session: &Session, data: &Value) -> Answer {
    let body = json!({"type": "s3", "namespace": "verified", "data": data});
    session.call("PATCH", "/v1/organization-vault?verify=true").json(&body).send()
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

#[test]
fn failing_credential_is_not_saved() {
    let (_moto, sound) = moto();
    let (vault, _activation_listener) = ActivationListener::open_with(Database::Sqlite, &[LOCAL]);
    let session = vault.admin_session();
    let refused = verify(&session, &with(&sound, "secret_access_key", "not-the-one-that-was-issued"));
    let refused = refused.problem("not-usable");
    assert_eq!(refused.status, 422);
    assert!(
        checks(&refused.json()).contains(&"authenticate failed signature-mismatch".to_owned()),
        "{}",
        refused.text()
    );
    assert_eq!(session.list().len(), 0, "nothing is stored");
    verify(&session, &sound).expect(201);
    assert_eq!(session.list().len(), 1);
}

#[test]
fn without_configuration_no_private_address_is_checked() {
    let (vault, activation_listener) = ActivationListener::open(Database::Sqlite);
    let session = vault.admin_session();
    // Counts connections to itself.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let data = |endpoint: &str| {
        json!({
            "access_key_id": "AKIAQ3EGRIYLK0000001", "secret_access_key": "7sGh+Wm0y5RkPzXvB/Lq9eTcUj2NdFa0", "bucket": "exports",
            "region": "us-east-1", "endpoint": endpoint, "path_style_access": true,
        })
    };
    assert_eq!(verify(&session, &data(&format!("http://127.0.0.1:{port}"))).status, 422);
    assert_eq!(session.list().len(), 0);

    let integration = Integration::make(&vault, "import", &["inside/*"]);
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
        "[64:ff9b::7f00:1]",
    ];
    for (number, host) in hosts.into_iter().enumerate() {
        let (namespace, data) = (format!("inside/{number}"), data(&format!("http://{host}:{port}")));
        let body = json!({"type": "s3", "namespace": namespace, "data": data});
        if session.try_save(&body).status != 201 {
            continue; // rejected immediately
        }
        let report = integration.check(&activation_listener.client(), &namespace, &["list"]).expect(200).json();
        assert_eq!(report["usable"], false, "{host}: {report}");
        let found = checks(&report["credentials"][0]);
        assert!(found.contains(&"authenticate failed blocked-egress".to_owned()), "{host}: {found:?}");
        assert!(listener.accept().is_err(), "{host} was connected to");
    }
}
