//! Faults of ours.

use crate::support::{World, WorldBuilder, assert_problem, request, s3};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vault_core::activation::VendRule;
use vault_core::credential::{CredentialType, VersionList};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, KeyId};
use vault_core::port::{MockCredentialStore, StoreError, StoredCredential};
use vault_core::role::Role;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use vault_http::Readiness;

const JSON: &str = "Content-Type: application/json";
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn panic_returns_generic_500_and_process_survives() {
    let mut credentials = MockCredentialStore::new();
    credentials.expect_list_credentials().returning(|_| panic!("secret internals"));
    let world = WorldBuilder::default().credentials(credentials).start();
    let token = world.token(Role::Admin);
    let mut wire = world.wire();
    for _ in 0..3 {
        let response = wire.exchange(request("GET /v1/organization-vault", &[&token], ""));
        assert_problem(&response, 500, "internal-error", "a panic");
        assert!(!response.text().contains("secret internals"));
    }
    assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
}

#[test]
fn panic_of_port_returns_500() {
    struct NoClock;
    impl vault_core::port::Clock for NoClock {
        fn now(&self) -> vault_core::time::Timestamp {
            panic!("no time")
        }
    }
    let world = WorldBuilder::default().accounts_clock(Arc::new(NoClock)).start();
    let mut wire = world.wire();
    let response = wire.exchange(request("GET /v1/organization-vault", &["Authorization: Bearer a"], ""));
    assert_problem(&response, 500, "internal-error", "a panic in the handler");
    assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
}

#[test]
fn unavailable_store_is_503_and_broken_store_500() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let away = || StoreError::Unavailable("host db.internal refused".into());
    let damaged = || StoreError::Integrity { table: "credentials", id: "x".into(), reason: "code" };
    for (line, body) in [
        ("GET /v1/organization-vault", ""),
        ("GET /v1/organization-vault/x", ""),
        ("DELETE /v1/organization-vault/x", ""),
        ("PATCH /v1/organization-vault", &*s3("a", "b")),
        ("POST /v1/logout", ""),
        ("POST /v1/login", "{\"email\":\"a@x.io\",\"password\":\"b\",\"passcode\":\"c\"}"),
    ] {
        world.store.fail_next(away());
        let response = world.send(line, &[&token, JSON], body);
        assert_problem(&response, 503, "unavailable", line);
        assert_eq!(response.header("retry-after"), Some("5"));
        assert!(!response.text().contains("db.internal"));
        world.store.fail_next(StoreError::Full);
        let response = world.send(line, &[&token, JSON], body);
        assert_problem(&response, 503, "unavailable", line);
        assert!(response.text().contains("database is full") && response.text().contains("Activations"));
        world.store.fail_next(damaged());
        let response = world.send(line, &[&token, JSON], body);
        assert_problem(&response, 500, "internal-error", line);
        assert!(!response.text().contains("credentials"));
    }
}

/// A credential as a store has it, which nothing opens.
fn stored(id: CredentialId) -> StoredCredential {
    StoredCredential {
        id,
        kind: CredentialType::S3,
        namespace: "a".parse().unwrap(),
        version: 1,
        highest: 1,
        listed: VersionList::default(),
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        revision: 1,
        staged: None,
        previous: None,
        expires_at: None,
        vend: VendRule::Any,
        code: Digest::from_bytes([0; 32]),
        metadata: None,
        check: None,
        last_activated_at: None,
        key: KeyId::from_bytes([0; 16]),
        information: Blob::from_bytes(vec![0; 32]),
    }
}

#[test]
fn disconnected_client_does_not_interrupt_its_request() {
    let ((started, begins), (release, released), (ended, ends)) = (channel(), channel(), channel());
    let released = Mutex::new(released);
    let mut credentials = MockCredentialStore::new();
    credentials.expect_show_credential().returning(|query| Ok(Some(stored(query.key))));
    credentials.expect_delete_credential().returning(move |_| {
        started.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        ended.send(()).unwrap();
        Ok(true)
    });
    let world = WorldBuilder::default().credentials(credentials).start();
    let token = world.token(Role::Editor);
    let mut wire = world.wire();
    let id = "0193aaaa-0000-7000-8000-000000000000";
    wire.send(request(&format!("DELETE /v1/organization-vault/{id}"), &[&token], ""));
    begins.recv_timeout(PATIENCE).expect("carried out");
    drop(wire);
    release.send(()).unwrap();
    ends.recv_timeout(PATIENCE).expect("finished, although the client has disconnected");
}

#[test]
fn unready_server_reports_it_and_keeps_running() {
    let world = World::start();
    let response = world.send("GET /readyz", &[], "");
    assert_eq!((response.status, response.text()), (200, "{\"status\":\"ok\"}".to_owned()));
    let not_ready = Readiness::new(|| std::future::ready(Err("no space left on device".to_owned())));
    let world = WorldBuilder::default().parts(|parts| parts.readiness = not_ready).start();
    let response = world.send("GET /readyz", &[], "");
    assert_problem(&response, 503, "unavailable", "not ready");
    assert!(!response.text().contains("space"), "the cause is disclosed only to operators: {}", response.text());
    assert_eq!(world.send("GET /livez", &[], "").status, 200);
}
