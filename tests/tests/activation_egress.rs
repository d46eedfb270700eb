//! Limits on outgoing connections that users can cause by saving or checking credentials.

use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use vault_tests::{ActivationListener, Database, Integration, Session, Vault};

const LOCAL: &str = "--allow-egress=127.0.0.0/8";

fn s3(endpoint: &str) -> (&'static str, Value) {
    let data = json!({
        "access_key_id": "AKIAQ3EGRIYLK0000001", "secret_access_key": "7sGh+Wm0y5RkPzXvB/Lq9eTcUj2NdFa0", "bucket": "exports",
        "region": "us-east-1", "endpoint": endpoint, "path_style_access": true,
    });
    ("s3", data)
}

fn role(endpoint: &str) -> (&'static str, Value) {
    let (kind, mut data) = s3(endpoint);
    data["role_arn"] = "arn:aws:iam::123456789012:role/importer".into();
    (kind, data)
}

fn gcs(endpoint: &str) -> (&'static str, Value) {
    let key = json!({
        "type": "service_account", "project_id": "acme", "private_key_id": "0123456789abcdef0123456789abcdef01234567",
        "private_key": include_str!("../../crates/vault-testkit/src/stores/service-account.pem"),
        "client_email": "importer@acme.iam.gserviceaccount.com", "client_id": "1", "token_uri": format!("{endpoint}/token"),
    });
    ("gcs", json!({"service_account_key": key, "bucket": "exports"}))
}

fn link(endpoint: &str) -> (&'static str, Value) {
    ("direct-link", json!({"url": format!("{}/a.csv?signature=4f2a", endpoint.replacen("http:", "https:", 1))}))
}

/// A vault with an activation listener, and an integration for `checked/*`.
struct Stage {
    _vault: Vault,
    activation_listener: ActivationListener,
    session: Session,
    integration: Integration,
}

impl Stage {
    fn set(flags: &[&str]) -> Self {
        let flags = [&["--activation-rate=0"], flags].concat();
        let (vault, activation_listener) = ActivationListener::open_with(Database::Sqlite, &flags);
        let (session, integration) = (vault.admin_session(), Integration::make(&vault, "checker", &["checked/*"]));
        Self { _vault: vault, activation_listener, session, integration }
    }

    fn save(&self, namespace: &str, (kind, data): (&str, Value)) -> u16 {
        self.session.try_save(&json!({"type": kind, "namespace": namespace, "data": data})).status
    }

    /// Returns why the credential of `namespace` fails to authenticate.
    fn reason(&self, namespace: &str) -> String {
        let report = self.integration.check(&self.activation_listener.client(), namespace, &[]).expect(200).json();
        let checks = report["credentials"][0]["checks"].as_array().unwrap();
        let failed = checks.iter().find(|check| check["check"] == "authenticate").unwrap();
        assert_eq!((&failed["result"], &report["usable"]), (&json!("failed"), &json!(false)), "{report}");
        failed["reason"].as_str().unwrap().to_owned()
    }
}

#[test]
fn no_spelling_of_loopback_is_connected_to() {
    let stage = Stage::set(&[]);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "user:word@127.0.0.1",
        "store.example@127.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
    ];
    let mut saved = 0;
    for (number, (make, host)) in
        [s3, role, gcs, link].into_iter().flat_map(|make| hosts.map(|host| (make, host))).enumerate()
    {
        let namespace = format!("checked/{number}");
        let data = make(&format!("http://{host}:{port}"));
        // A save with a check does not connect either.
        let body = json!({"type": data.0, "namespace": namespace, "data": data.1});
        let verified = stage.session.patch("/organization-vault?verify=true", &body);
        assert_eq!(verified.status, 422, "{host}: {}", verified.text());
        if stage.save(&namespace, data) == 201 {
            saved += 1;
            let reason = stage.reason(&namespace);
            assert!(["blocked-egress", "dns", "unexpected-answer"].contains(&&*reason), "{host}: {reason}");
            let short = json!({"namespace": namespace, "vend": "short"});
            stage.integration.activate_with(&stage.activation_listener.client(), &short).problem("conflict");
        }
        assert!(listener.accept().is_err(), "{host} was connected to");
    }
    assert!(saved > hosts.len(), "{saved} were tried");
}

/// A storage server that accepts connections and does not respond until it is released.
struct Slow {
    endpoint: String,
    waiting: Arc<AtomicUsize>,
    open: Arc<(Mutex<bool>, Condvar)>,
}

impl Slow {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (waiting, open) = (Arc::new(AtomicUsize::new(0)), Arc::new((Mutex::new(false), Condvar::new())));
        let (counted, gate) = (Arc::clone(&waiting), Arc::clone(&open));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counted, gate) = (Arc::clone(&counted), Arc::clone(&gate));
                thread::spawn(move || answer_in_the_end(stream, &counted, &gate));
            }
        });
        Self { endpoint, waiting, open }
    }

    fn wait_for(&self, connections: usize) {
        while self.waiting.load(Ordering::SeqCst) < connections {
            thread::yield_now();
        }
    }

    fn let_go(&self) {
        *self.open.0.lock().unwrap() = true;
        self.open.1.notify_all();
    }
}

fn answer_in_the_end(mut stream: TcpStream, counted: &AtomicUsize, (open, changed): &(Mutex<bool>, Condvar)) {
    let _ = stream.read(&mut [0; 4096]);
    counted.fetch_add(1, Ordering::SeqCst);
    let mut is_open = open.lock().unwrap();
    while !*is_open {
        is_open = changed.wait(is_open).unwrap();
    }
    let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

#[test]
fn requests_waiting_for_stores_are_limited() {
    const MOST: usize = 8;
    let stage = Stage::set(&[LOCAL]);
    let slow = Slow::start();
    assert_eq!(stage.save("checked/slow", s3(&slow.endpoint)), 201);
    let (kind, data) = s3(&slow.endpoint);
    let other = Integration::make(&stage._vault, "another", &["checked/slow"]);
    let body = json!({"type": kind, "namespace": "checked/new", "data": data});
    let verify = || stage.session.patch("/organization-vault?verify=true", &body);
    thread::scope(|scope| {
        let checks: Vec<_> = (0..MOST)
            .map(|_| {
                scope.spawn(|| stage.integration.check(&stage.activation_listener.client(), "checked/slow", &[]).status)
            })
            .collect();
        slow.wait_for(MOST);
        let client = stage.activation_listener.client();
        let refused = stage.integration.check(&client, "checked/slow", &[]).problem("too-many-requests");
        assert!(refused.header("retry-after").is_some());
        let short = json!({"namespace": "checked/slow", "vend": "prefer-short"});
        stage.integration.activate_with(&client, &short).problem("too-many-requests");
        // Requests without storage access continue, and so do those of other callers.
        stage.integration.activate(&client, "checked/slow").expect(201);
        client.get("/readyz").send().expect(200);
        assert_eq!(stage.session.list().len(), 1);
        let others = scope.spawn(|| other.check(&stage.activation_listener.client(), "checked/slow", &[]).status);
        slow.wait_for(MOST + 1);

        // Saves with a check have the same limit.
        let saves: Vec<_> = (0..MOST).map(|_| scope.spawn(|| verify().status)).collect();
        slow.wait_for(2 * MOST + 1);
        verify().problem("too-many-requests");
        stage.session.save(&body);

        slow.let_go();
        assert!(checks.into_iter().chain([others]).all(|check| check.join().unwrap() == 200));
        // A denied listing shows that the credential is valid, so the saves succeed.
        assert!(saves.into_iter().all(|save| save.join().unwrap() == 201));
    });
    stage.integration.check(&stage.activation_listener.client(), "checked/slow", &[]).expect(200);
}
