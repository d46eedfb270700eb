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
fn a84_clients_that_read_nothing_are_disconnected() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let mut long = s3().request;
    long["data"]["key_prefix"] = json!("p".repeat(1024));
    for _ in 0..100 {
        session.save(&long);
    }
    let ask = request("GET /v1/organization-vault", &[&session.header()], "");
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
