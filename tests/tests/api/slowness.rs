//! Slow peers. Deadlines are short here, and only their lower bound is measured.

use super::app::{App, JSON, until};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use vault_http::Deadlines;
use vault_tests::wire::{Wire, request};

/// Far longer than any operation that ends.
const PATIENCE: Duration = Duration::from_secs(60);
/// The framework's clock for the first head of a connection runs in steps of half a second.
const DEADLINE: Duration = Duration::from_millis(1_500);
const LEAST: Duration = Duration::from_millis(1_000);

fn app(change: impl FnOnce(&mut Deadlines)) -> App {
    App::with(|setup| change(&mut setup.settings.listener.deadlines))
}

/// Opens a connection, once the host has fewer than its maximum.
fn served_wire(app: &App) -> Wire {
    until("another connection is served", || {
        let mut wire = app.wire();
        wire.send(request("GET /livez", &[], ""));
        wire.answer().map(|_| wire)
    })
}

/// Sends `byte` repeatedly until the server responds or closes. Returns the response and the elapsed time. A deadline
/// that every byte extends would never pass.
fn trickle(mut stream: TcpStream, byte: &[u8]) -> (Wire, Duration) {
    let began = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    while began.elapsed() < PATIENCE {
        let _ = stream.write_all(byte); // it may be closed
        match stream.peek(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => {
                let taken = began.elapsed();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return (Wire::over(stream), taken);
            }
        }
    }
    panic!("a peer that sends byte by byte is served for ever");
}

#[test]
fn every_request_head_has_a_timeout() {
    let app = app(|deadlines| (deadlines.head, deadlines.idle) = (DEADLINE, DEADLINE));
    let live = request("GET /livez", &[], "");
    let half = "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ";
    let mut stream = TcpStream::connect(app.address).unwrap();
    stream.write_all(half.as_bytes()).unwrap();
    let (mut wire, taken) = trickle(stream, b"a");
    let answer = wire.answer().unwrap();
    assert_eq!(answer.status, 408);
    assert!(answer.body.is_empty() && wire.is_closed());
    assert!(taken >= LEAST, "{taken:?}");
    // A later head gets no answer.
    for before in [1, 3] {
        let mut stream = TcpStream::connect(app.address).unwrap();
        let mut wire = Wire::over(stream.try_clone().unwrap());
        for _ in 0..before {
            assert_eq!(wire.exchange(&live).status, 200);
        }
        stream.write_all(half.as_bytes()).unwrap();
        let (mut wire, taken) = trickle(stream, b"a");
        assert!(wire.is_closed(), "after {before}");
        assert!(taken >= LEAST, "{taken:?} after {before}");
    }
    // The start of a second head together with the first request.
    let mut stream = TcpStream::connect(app.address).unwrap();
    stream.write_all(&[&live, half.as_bytes()].concat()).unwrap();
    assert_eq!(Wire::over(stream.try_clone().unwrap()).answer().unwrap().status, 200);
    let (mut wire, taken) = trickle(stream, b"a");
    assert!(taken >= LEAST && wire.is_closed(), "{taken:?}");
}

#[test]
fn body_has_a_timeout() {
    let app = app(|deadlines| deadlines.body = DEADLINE);
    for (framing, byte) in [("Content-Length: 60000", &b" "[..]), ("Transfer-Encoding: chunked", b"1\r\n \r\n")] {
        let mut stream = TcpStream::connect(app.address).unwrap();
        stream.write_all(&request("POST /v1/login", &[JSON, framing], "")).unwrap();
        let (mut wire, taken) = trickle(stream, byte);
        let answer = wire.answer().unwrap();
        answer.check_common();
        let answer = answer.problem("request-timeout");
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(taken >= LEAST, "{taken:?}");
    }
}

#[test]
fn idle_timeout_exceeds_head_timeout() {
    let app = app(|deadlines| (deadlines.head, deadlines.idle) = (Duration::from_millis(200), 2 * DEADLINE));
    let mut wire = app.wire();
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
    let app = App::with(|setup| {
        setup.settings.listener.deadlines.answer = DEADLINE;
        setup.settings.listener.connections_per_host = 2;
    });
    let token = app.editor().header();
    let mut first = served_wire(&app);
    save_many(&mut first, &token);
    let mut wire = served_wire(&app);
    // Enough responses to fill every buffer in between.
    let asked = 100;
    for _ in 0..asked {
        wire.send(request("GET /v1/organization-vault", &[&token], ""));
    }
    let began = Instant::now();
    served_wire(&app); // the slot of the unread one
    assert!(began.elapsed() >= LEAST, "{:?}", began.elapsed());
    // The rest of the kernel buffers is received, then the end.
    let mut buffer = vec![0; 1 << 20];
    let read: usize = std::iter::from_fn(|| wire.stream().read(&mut buffer).ok().filter(|read| *read > 0)).sum();
    assert!((1..asked * ANSWER).contains(&read), "{read} bytes were sent to a peer that does not read");
}

/// Minimum length of a list of the credentials of [`save_many`], in bytes.
const ANSWER: usize = 200 * 1_000;

/// Saves enough credentials over `wire` for a long list.
fn save_many(wire: &mut Wire, token: &str) {
    for index in 0..200 {
        let data = serde_json::json!({
            "access_key_id": "AKIA2TESTONLY7SAMPLE",
            "secret_access_key": format!("wJalrXUtnFEMI/K7MDENG/bPxRfiCY{index}"),
            "bucket": "b",
            "key_prefix": "p".repeat(1_000),
        });
        let body = serde_json::json!({"type": "s3", "namespace": "a", "data": data}).to_string();
        wire.exchange(request("PATCH /v1/organization-vault", &[token, JSON], body)).expect(201);
    }
}

#[test]
fn connections_of_one_host_are_bounded() {
    let app = App::with(|setup| setup.settings.listener.connections_per_host = 2);
    let mut first = app.wire();
    let mut second = app.wire();
    assert_eq!(first.exchange(request("GET /livez", &[], "")).status, 200);
    assert_eq!(second.exchange(request("GET /livez", &[], "")).status, 200);
    assert!(app.wire().is_closed());
    drop(first);
    served_wire(&app);
}
