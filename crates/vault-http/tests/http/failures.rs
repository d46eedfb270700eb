//! Faults of ours.

use crate::support::{World, WorldBuilder, assert_problem, request, s3};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vault_core::port::{MockCredentialStore, SaveOutcome, StoreError};
use vault_core::role::Role;
use vault_http::Readiness;

const JSON: &str = "Content-Type: application/json";

#[test]
fn a_panic_is_a_generic_500_and_the_process_lives() {
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
fn a_panic_of_a_port_that_the_worker_calls_is_one_too() {
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
fn a_store_that_is_away_is_503_and_a_broken_one_500() {
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
        world.store.fail_next(damaged());
        let response = world.send(line, &[&token, JSON], body);
        assert_problem(&response, 500, "internal-error", line);
        assert!(!response.text().contains("credentials"));
    }
}

#[test]
fn a_client_that_goes_away_does_not_cut_a_save_in_half() {
    let finished = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&finished);
    let mut credentials = MockCredentialStore::new();
    credentials.expect_save_credential().returning(move |_| {
        std::thread::sleep(Duration::from_millis(300));
        seen.store(true, Ordering::SeqCst);
        Ok(SaveOutcome::Saved)
    });
    let world = WorldBuilder::default().credentials(credentials).start();
    let token = world.token(Role::Editor);
    let mut wire = world.wire();
    wire.send(request("PATCH /v1/organization-vault", &[&token, JSON], s3("a", "b")));
    std::thread::sleep(Duration::from_millis(100));
    drop(wire);
    let began = Instant::now();
    while !finished.load(Ordering::SeqCst) && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(finished.load(Ordering::SeqCst));
}

#[test]
fn what_is_not_ready_says_so_and_lives() {
    let world = World::start();
    let response = world.send("GET /readyz", &[], "");
    assert_eq!((response.status, response.text()), (200, "{\"status\":\"ok\"}".to_owned()));
    let not_ready = Readiness::new(|| std::future::ready(false));
    let world = WorldBuilder::default().parts(|parts| parts.readiness = not_ready).start();
    assert_problem(&world.send("GET /readyz", &[], ""), 503, "unavailable", "not ready");
    assert_eq!(world.send("GET /livez", &[], "").status, 200);
}
