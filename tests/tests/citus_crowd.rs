//! Many clients while a Citus node is added. `tests/citus` builds the extension and runs this test. The faults `nodes` and
//! `kill` kill nodes and the service.

#![allow(clippy::print_stdout, reason = "figures for the pages")]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::process::free_address;
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Integration, Session, Vault};

const WORKERS: usize = 2;
/// Half of them save, a quarter lists, and a quarter activates.
const CLIENTS: usize = 64;
/// A request ends after at most 2.8 s. Ten times this value, so that the speed of the host does not matter.
const SLOWEST: Duration = Duration::from_secs(30);

/// The observations of one client.
#[derive(Default)]
struct Seen {
    saved: Vec<String>,
    refused: usize,
    slowest: Duration,
}

/// A vault whose clients all start simultaneously.
struct Crowd {
    vault: Vault,
    session: Session,
    integration: Integration,
    listener: ActivationListener,
}

impl Crowd {
    fn on(cluster: &Cluster, before: impl FnOnce(&Vault)) -> Self {
        let mut vault = Vault::absent_on(cluster);
        before(&vault);
        vault = vault.set_up();
        let listener = ActivationListener { address: free_address() };
        let listen = format!("--activation-listen={}", listener.address);
        vault.serve_with(&["--activation-rate", "0", &listen]);
        let session = vault.admin_session();
        let integration = Integration::make(&vault, "crew", &["crew/*"]);
        (0..20).for_each(|number| drop(session.save(&small("crew/one", number))));
        Self { vault, session, integration, listener }
    }

    /// Runs all clients continuously while something happens. Returns their observations.
    fn during(&mut self, happens: impl FnOnce(&mut Vault)) -> Vec<Seen> {
        let ends = AtomicBool::new(false);
        let Self { vault, session, integration, listener } = self;
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let (ends, session) = (&ends, session.on(&vault.client()));
                    let (integration, listener) = (&*integration, *listener);
                    scope.spawn(move || ask(&session, integration, listener, number, ends))
                })
                .collect();
            // Stop the clients in any case.
            let happened = catch_unwind(AssertUnwindSafe(|| happens(vault)));
            ends.store(true, Ordering::Relaxed);
            let seen = clients.into_iter().map(|client| client.join().unwrap()).collect();
            happened.unwrap_or_else(|panic| resume_unwind(panic));
            seen
        })
    }

    /// Compares the stored credentials with the acknowledged saves. Returns their number.
    fn check(&self, cluster: &Cluster, seen: &[Seen]) -> usize {
        let slowest = seen.iter().map(|one| one.slowest).max().unwrap_or_default();
        assert!(slowest < SLOWEST, "the slowest request took {slowest:?}");
        let stored = cluster.execute(self.vault.url(), "SELECT id FROM credentials");
        let stored: BTreeSet<&str> = stored.lines().collect();
        let mut saved = seen.iter().flat_map(|one| &one.saved);
        assert!(saved.all(|id| stored.contains(id.as_str())), "an acknowledged save is lost");
        let output = self.vault.run(&["doctor", "--deep"]);
        assert_eq!(output.status, Some(0), "{}", output.stdout);
        seen.iter().map(|one| one.saved.len()).sum()
    }
}

/// Saves, lists or activates until stopped.
fn ask(
    session: &Session,
    integration: &Integration,
    listener: ActivationListener,
    number: usize,
    ends: &AtomicBool,
) -> Seen {
    let (mut seen, client) = (Seen::default(), listener.client());
    while !ends.load(Ordering::Relaxed) {
        let started = Instant::now();
        let vault = "/v1/organization-vault";
        let answer = match number % 4 {
            0 | 1 => session.call("PATCH", vault).json(&small("crew/two", seen.saved.len())).try_send(),
            2 => session.call("GET", &format!("{vault}?limit=100")).try_send(),
            _ => {
                let wanted = serde_json::json!({"namespace": "crew/one"});
                client.request("POST", "/v1/activations").bearer(&integration.token).json(&wanted).try_send()
            }
        };
        seen.slowest = seen.slowest.max(started.elapsed());
        match answer {
            Ok(answer) => {
                assert!([200, 201, 429, 503].contains(&answer.status), "{}", answer.text());
                if answer.status >= 300 {
                    seen.refused += 1;
                    // As the response requested.
                    thread::sleep(Duration::from_millis(100));
                }
                if number % 4 < 2 && answer.status < 300 {
                    seen.saved.push(answer.json()["id"].as_str().unwrap().to_owned());
                }
            }
            // The server is unavailable.
            Err(_) => {
                seen.refused += 1;
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    seen
}

fn cluster(workers: usize) -> Cluster {
    Cluster::start(Options { fsync: false, workers, max_connections: 300, ..Options::default() })
}

/// A new worker gets its share of the rows during saves, lists and activations: nothing is lost, and no request exceeds
/// its deadline.
#[test]
#[ignore = "needs the extension Citus: tests/citus"]
fn new_worker_gets_its_share_during_requests() {
    let cluster = cluster(WORKERS + 1);
    let mut last = String::new();
    let mut crowd = Crowd::on(&cluster, |vault| {
        last = cluster.execute(vault.url(), "SELECT nodename FROM pg_dist_node ORDER BY nodeid DESC LIMIT 1");
        cluster.execute(vault.url(), &format!("SELECT citus_remove_node('{last}', 5432)"));
    });
    let url = crowd.vault.url().to_owned();
    let started = Instant::now();
    let seen = crowd.during(|_| {
        cluster.execute(&url, &format!("SELECT citus_add_node('{last}', 5432)"));
        let start = "SELECT citus_rebalance_start('by_shard_count', shard_transfer_mode := 'force_logical')";
        cluster.execute(&url, start);
        cluster.execute(&url, "SELECT citus_rebalance_wait()");
    });
    let took = started.elapsed();
    let shards = format!("SELECT count(*) FROM citus_shards WHERE nodename = '{last}'");
    let shards: usize = cluster.execute(&url, &shards).parse().unwrap();
    assert!(shards > 0, "the new worker got no shard");
    let saved = crowd.check(&cluster, &seen);
    let slowest = seen.iter().map(|one| one.slowest).max().unwrap_or_default();
    let refused: usize = seen.iter().map(|one| one.refused).sum();
    println!(
        "{CLIENTS} clients while {shards} shards moved in {took:.1?}: {saved} saves, {refused} requests refused, \
         slowest request {slowest:?}"
    );
}
