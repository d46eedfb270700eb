//! Attacks with slow clients. The deadlines are the server's, and these tests only wait until they have passed.

use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::samples::s3;
use vault_tests::wire::{Wire, request};
use vault_tests::{Database, Vault};

/// Number of requests of a client that reads no response.
const ASKED: usize = 3_000;
/// Maximum memory for the 15,000 requests of such clients, in bytes.
const UNREAD: u64 = 32 << 20;
/// Much longer than any deadline of the server.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a84_slow_clients_are_disconnected() {
    let mut vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let login = request("POST", "/v1/login", &["Content-Type: application/json"], &[b' '; 60_000]);
    let wires = |count: usize| (0..count).map(|_| Wire::connect(vault.address())).collect::<Vec<_>>();
    let (mut heads, mut bodies, mut silent) = (wires(60), wires(60), wires(20));
    for wire in &mut bodies {
        wire.send(&login[..200]);
    }
    // Send a byte at intervals until the server has closed every connection.
    let start = Instant::now();
    let (mut sent, mut open) = (0, heads.len() + bodies.len());
    while open > 0 {
        assert!(start.elapsed() < PATIENCE, "{open} slow connections are still served");
        let head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let byte = &head[sent.min(head.len() - 1)..][..1];
        open = 0;
        for (wire, byte) in
            heads.iter_mut().map(|wire| (wire, byte)).chain(bodies.iter_mut().map(|wire| (wire, &b" "[..])))
        {
            open += usize::from(wire.try_send(byte).is_ok());
        }
        sent += 1;
        // Other clients are served in the meantime.
        assert_eq!(vault.client().get("/livez").send().status, 200);
        assert_eq!(session.try_list().status, 200);
        thread::sleep(Duration::from_millis(500));
    }
    for wire in heads.iter_mut().chain(&mut bodies).chain(&mut silent) {
        let _ = wire.stream().set_read_timeout(Some(PATIENCE));
        assert!(wire.ends(), "a connection without a request stays open");
    }
    let mut server = vault.take_server();
    assert!(server.is_alive());
}

#[test]
fn a84_clients_that_read_nothing_are_disconnected() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let mut long = s3().request;
    long["data"]["key_prefix"] = json!("p".repeat(1024));
    for _ in 0..100 {
        session.save(&long);
    }
    let ask = request("GET", "/v1/organization-vault", &[&format!("Authorization: Bearer {}", session.token)], b"");
    let before = vault.server().resident_bytes();
    let mut wires: Vec<Wire> = (0..5).map(|_| Wire::connect(vault.address())).collect();
    for wire in &mut wires {
        // More responses than all buffers together can contain.
        wire.send(ask.repeat(ASKED));
    }
    let ends: Vec<_> = wires.iter().map(|wire| wire.stream().local_addr().unwrap()).collect();
    assert!(ends.iter().all(|&end| vault.server().is_connected(end)));
    let start = Instant::now();
    for end in ends {
        while vault.server().is_connected(end) {
            assert!(start.elapsed() < PATIENCE, "an unread connection stays open");
            let grown = vault.server().resident_bytes().saturating_sub(before);
            assert!(grown < UNREAD, "responses that are not read use {grown} bytes");
            assert_eq!(vault.client().get("/livez").send().status, 200);
            thread::sleep(Duration::from_millis(200));
        }
    }
    for wire in &mut wires {
        let answers = std::iter::from_fn(|| wire.answer()).count();
        assert!(answers < ASKED, "all answers were sent: none of this was slow");
        assert!(wire.ends());
    }
}
