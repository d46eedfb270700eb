//! Failures of the server and its ports.

use super::app::{App, JSON, s3};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vault_core::operation::Work;
use vault_core::port::{MockTokenIssuer, StoreError};
use vault_http::Readiness;
use vault_testkit::faulty::{Fault, Faulty};
use vault_tests::wire::request;

/// Longer than any operation takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn panic_returns_generic_500_and_process_survives() {
    let panics = |method| (method == "ListCredentials").then(|| panic!("secret internals"));
    let app = App::with(|setup| setup.faulty(|store| store.faults(panics)));
    let header = app.admin().header();
    let mut wire = app.wire();
    for _ in 0..3 {
        let answer = wire.exchange(request("GET /v1/organization-vault", &[&header], "")).problem("internal-error");
        assert!(!answer.text().contains("secret internals"));
    }
    wire.exchange(request("GET /livez", &[], "")).expect(200);
}

#[test]
fn panic_of_port_returns_500() {
    let mut tokens = MockTokenIssuer::new();
    tokens.expect_verify().returning(|_, _| panic!("no keys"));
    let app = App::with(|setup| setup.ports(|ports| ports.tokens = Arc::new(tokens)));
    let mut wire = app.wire();
    let asked = request("GET /v1/organization-vault", &["Authorization: Bearer a"], "");
    wire.exchange(asked).problem("internal-error");
    wire.exchange(request("GET /livez", &[], "")).expect(200);
}

#[test]
fn unavailable_store_is_503_and_broken_store_500() {
    let app = App::start();
    let header = app.admin().header();
    let save = s3("a", "b").to_string();
    for (line, body) in [
        ("GET /v1/organization-vault", ""),
        ("GET /v1/organization-vault/x", ""),
        ("DELETE /v1/organization-vault/x", ""),
        ("PATCH /v1/organization-vault", &*save),
        ("POST /v1/logout", ""),
        ("POST /v1/login", "{\"email\":\"a@x.io\",\"password\":\"b\",\"passcode\":\"c\"}"),
    ] {
        let failed = |error: StoreError, code: &str| {
            app.store.fail_next(error);
            app.send(line, &[&header, JSON], body).problem(code)
        };
        let away = failed(StoreError::Unavailable("host db.internal refused".into()), "unavailable");
        assert_eq!(away.header("retry-after"), Some("5"));
        assert!(!away.text().contains("db.internal"));
        let full = failed(StoreError::Full, "unavailable").text();
        assert!(full.contains("database is full") && full.contains("Activations"), "{full}");
        let damaged = StoreError::Integrity { table: "credentials", id: "x".into(), reason: "code" };
        assert!(!failed(damaged, "internal-error").text().contains("credentials"));
    }
}

#[test]
fn disconnected_client_does_not_interrupt_its_request() {
    let ((started, begins), (release, released), (ended, ends)) = (channel(), channel(), channel());
    let released = Mutex::new(released);
    let blocks = move |method| {
        (method == "DeleteCredential").then(|| {
            started.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
            Fault::Delayed(1_000)
        })
    };
    let ends_with = move |answer: &mut Result<Box<dyn Work>, StoreError>| ended.send(answer.is_ok()).unwrap();
    let wrap = |store: Faulty<_>| store.faults(blocks).answering("DeleteCredential", ends_with);
    let app = App::with(|setup| setup.faulty(wrap));
    let editor = app.editor();
    let id = editor.save(&s3("a", "b"));
    let mut wire = app.wire();
    wire.send(request(&format!("DELETE /v1/organization-vault/{id}"), &[&editor.header()], ""));
    begins.recv_timeout(PATIENCE).expect("carried out");
    drop(wire);
    release.send(()).unwrap();
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(true), "finished, although the client has disconnected");
}

#[test]
fn unready_server_reports_it_and_keeps_running() {
    let ready = App::start().send("GET /readyz", &[], "").expect(200);
    assert_eq!(ready.text(), "{\"status\":\"ok\"}");
    let not_ready = Readiness::new(|| std::future::ready(Err("no space left on device".to_owned())));
    let app = App::with(|setup| setup.parts.readiness = not_ready);
    let refused = app.send("GET /readyz", &[], "").problem("unavailable").text();
    assert!(!refused.contains("space"), "the cause is disclosed only to operators: {refused}");
    app.send("GET /livez", &[], "").expect(200);
}
