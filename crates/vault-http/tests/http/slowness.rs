//! Peers that take their time.

use crate::support::{World, WorldBuilder, assert_problem, request};
use std::time::{Duration, Instant};
use vault_core::role::Role;

const BYTE: Duration = Duration::from_millis(400);

/// Sends a byte at a time until the server has had enough; how long that took.
fn trickle(wire: &mut crate::support::Wire, began: Instant) -> Duration {
    while began.elapsed() < Duration::from_secs(30) && wire.try_send("a") {
        std::thread::sleep(BYTE);
        if began.elapsed() > Duration::from_secs(14) {
            break;
        }
    }
    began.elapsed()
}

#[test]
fn a_head_has_five_seconds_the_first_as_every_other() {
    let world = World::start();
    let mut threads = Vec::new();
    for requests_before in [0, 1, 3] {
        let mut wire = world.wire();
        threads.push(std::thread::spawn(move || {
            for _ in 0..requests_before {
                assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
            }
            let began = Instant::now();
            wire.send("GET /livez HTTP/1.1\r\nHost: v\r\nX: ");
            for _ in 0..11 {
                wire.try_send("a");
                std::thread::sleep(BYTE);
            }
            let response = wire.receive();
            let taken = began.elapsed();
            assert_eq!(response.status, 408, "after {requests_before}");
            assert!(response.body.is_empty() && wire.is_closed());
            assert!(
                taken > Duration::from_secs(4) && taken < Duration::from_secs(6),
                "{taken:?} after {requests_before}"
            );
        }));
    }
    // The beginning of a second head together with the first request.
    let mut wire = world.wire();
    threads.push(std::thread::spawn(move || {
        wire.send([request("GET /livez", &[], ""), b"GET /liv".to_vec()].concat());
        assert_eq!(wire.receive().status, 200);
        let began = Instant::now();
        let taken = trickle(&mut wire, began);
        assert!(taken < Duration::from_secs(8), "{taken:?}");
    }));
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_body_has_ten_seconds() {
    let world = World::start();
    let mut wire = world.wire();
    let began = Instant::now();
    wire.send("POST /v1/login HTTP/1.1\r\nHost: v\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n");
    for _ in 0..24 {
        wire.try_send(" ");
        std::thread::sleep(BYTE);
    }
    let response = wire.receive();
    assert_problem(&response, 408, "request-timeout", "a slow body");
    assert!(began.elapsed() > Duration::from_secs(9) && began.elapsed() < Duration::from_secs(11));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(wire.is_closed());
}

#[test]
fn an_idle_connection_within_its_time_is_kept() {
    let world = World::start();
    let mut wire = world.wire();
    assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
}

#[test]
fn an_answer_must_be_read_within_ten_seconds() {
    let world = World::start();
    let token = world.token(Role::Editor);
    let prefix = "p".repeat(1_000);
    for index in 0..400 {
        let data = serde_json::json!({
            "access_key_id": "AKIA2TESTONLY7SAMPLE", "secret_access_key": format!("secret-{index}"), "bucket": "b", "key_prefix": prefix,
        });
        let body = serde_json::json!({"type": "s3", "namespace": "a", "data": data}).to_string();
        let response = world.send("PATCH /v1/organization-vault", &[&token, "Content-Type: application/json"], body);
        assert_eq!(response.status, 201);
    }
    let mut wire = world.wire();
    // Enough answers to fill every buffer on the way.
    for _ in 0..16 {
        wire.send(request("GET /v1/organization-vault", &[&token], ""));
    }
    let began = Instant::now();
    let mut read = 0;
    while began.elapsed() < Duration::from_secs(12) {
        read += wire.read_some(10);
        std::thread::sleep(BYTE);
    }
    // What the kernel still held may come, then the end.
    let whole = 16 * 400 * 1_000;
    while let more @ 1.. = wire.read_some(1 << 20) {
        read += more;
    }
    assert!(read < whole, "{read} of at least {whole} bytes were sent to a peer that does not read");
}

#[test]
fn connections_of_one_peer_are_bounded() {
    let world = WorldBuilder::default().settings(|settings| settings.listener.connections_per_host = 2).start();
    let mut first = world.wire();
    let mut second = world.wire();
    assert_eq!(first.exchange(request("GET /livez", &[], "")).status, 200);
    assert_eq!(second.exchange(request("GET /livez", &[], "")).status, 200);
    assert!(world.wire().is_closed());
    drop(first);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(world.send("GET /livez", &[], "").status, 200);
}
