//! Peers that take their time. Deadlines are short here; nothing but their lower bound is measured.

use crate::support::{Wire, World, WorldBuilder, assert_problem, request};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use vault_core::role::Role;
use vault_http::Deadlines;

/// Far longer than anything takes that has an end.
const PATIENCE: Duration = Duration::from_secs(60);
/// The framework's clock for the first head of a connection runs in steps of half a second.
const DEADLINE: Duration = Duration::from_millis(1_500);
const LEAST: Duration = Duration::from_millis(1_000);

fn world(change: impl FnOnce(&mut Deadlines) + 'static) -> World {
    WorldBuilder::default().settings(|settings| change(&mut settings.listener.deadlines)).start()
}

/// Sends `byte` again and again, until the server answers or closes. The answer, and how long it took: a deadline that
/// every byte extends never passes.
fn trickle(mut stream: TcpStream, byte: &[u8]) -> (Wire, Duration) {
    let began = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut first = [0; 1];
    while began.elapsed() < PATIENCE {
        let _ = stream.write_all(byte); // it may be closed
        match stream.read(&mut first) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            read => {
                let taken = began.elapsed();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let read = read.unwrap_or(0);
                return (Wire::over(stream).with_read(&first[..read]), taken);
            }
        }
    }
    panic!("a peer that sends byte by byte is served for ever");
}

#[test]
fn every_request_head_has_a_timeout() {
    let world = world(|deadlines| deadlines.head = DEADLINE);
    let live = request("GET /livez", &[], "");
    let half = "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ";
    for before in [0, 1, 3] {
        let mut stream = TcpStream::connect(world.address).unwrap();
        let mut wire = Wire::over(stream.try_clone().unwrap());
        for _ in 0..before {
            assert_eq!(wire.exchange(&live).status, 200);
        }
        stream.write_all(half.as_bytes()).unwrap();
        let (mut wire, taken) = trickle(stream, b"a");
        let response = wire.receive();
        assert_eq!(response.status, 408, "after {before}");
        assert!(response.body.is_empty() && wire.is_closed());
        assert!(taken >= LEAST, "{taken:?} after {before}");
    }
    // The beginning of a second head together with the first request.
    let mut stream = TcpStream::connect(world.address).unwrap();
    stream.write_all(&[&live, half.as_bytes()].concat()).unwrap();
    assert_eq!(Wire::over(stream.try_clone().unwrap()).receive().status, 200);
    let (mut wire, taken) = trickle(stream, b"a");
    assert_eq!(wire.receive().status, 408);
    assert!(taken >= LEAST && wire.is_closed(), "{taken:?}");
}

#[test]
fn body_has_a_timeout() {
    let world = world(|deadlines| deadlines.body = DEADLINE);
    let json = "Content-Type: application/json";
    for (framing, byte) in [("Content-Length: 60000", &b" "[..]), ("Transfer-Encoding: chunked", b"1\r\n \r\n")] {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.write_all(&request("POST /v1/login", &[json, framing], "")).unwrap();
        let (mut wire, taken) = trickle(stream, byte);
        let response = wire.receive();
        assert_problem(&response, 408, "request-timeout", framing);
        assert_eq!(response.header("connection"), Some("close"));
        assert!(taken >= LEAST, "{taken:?}");
    }
}

#[test]
fn idle_timeout_exceeds_head_timeout() {
    let world = world(|deadlines| (deadlines.head, deadlines.idle) = (Duration::from_millis(200), 2 * DEADLINE));
    let mut wire = world.wire();
    for _ in 0..2 {
        assert_eq!(wire.exchange(request("GET /livez", &[], "")).status, 200);
        std::thread::sleep(Duration::from_millis(600)); // what passes is the point, however much more it is
    }
    let began = Instant::now();
    assert!(wire.is_closed());
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
}

#[test]
fn response_must_be_read_within_timeout() {
    let world = WorldBuilder::default()
        .settings(|settings| {
            settings.listener.deadlines.answer = DEADLINE;
            settings.listener.connections_per_host = 2;
        })
        .start();
    let token = world.token(Role::Editor);
    let mut first = world.served_wire();
    save_many(&mut first, &token);
    let mut wire = world.served_wire();
    // Enough answers to fill every buffer on the way.
    let asked = 100;
    for _ in 0..asked {
        wire.send(request("GET /v1/organization-vault", &[&token], ""));
    }
    let began = Instant::now();
    world.served_wire(); // the slot of the unread one
    assert!(began.elapsed() >= LEAST, "{:?}", began.elapsed());
    // What the kernel still held comes, then the end.
    let read: usize = std::iter::from_fn(|| Some(wire.read_some(1 << 20)).filter(|read| *read > 0)).sum();
    assert!((1..asked * ANSWER).contains(&read), "{read} bytes were sent to a peer that does not read");
}

/// The least bytes of a list of what [`save_many`] saves.
pub(crate) const ANSWER: usize = 200 * 1_000;

/// Saves enough credentials over `wire` for a long list.
pub(crate) fn save_many(wire: &mut Wire, token: &str) {
    for index in 0..200 {
        let data = serde_json::json!({
            "access_key_id": "AKIA2TESTONLY7SAMPLE",
            "secret_access_key": format!("wJalrXUtnFEMI/K7MDENG/bPxRfiCY{index}"),
            "bucket": "b",
            "key_prefix": "p".repeat(1_000),
        });
        let body = serde_json::json!({"type": "s3", "namespace": "a", "data": data}).to_string();
        let json = "Content-Type: application/json";
        let response = wire.exchange(request("PATCH /v1/organization-vault", &[token, json], body));
        assert_eq!(response.status, 201, "{}", response.text());
    }
}

#[test]
fn connections_of_one_host_are_bounded() {
    let world = WorldBuilder::default().settings(|settings| settings.listener.connections_per_host = 2).start();
    let mut first = world.wire();
    let mut second = world.wire();
    assert_eq!(first.exchange(request("GET /livez", &[], "")).status, 200);
    assert_eq!(second.exchange(request("GET /livez", &[], "")).status, 200);
    assert!(world.wire().is_closed());
    drop(first);
    world.served_wire();
}
