//! Nodes of a distributed PostgreSQL (Citus) are killed.

use super::server::{end_all, finish};
use super::{Ground, Outcome, possible};
use crate::rig::Rig;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use vault_testkit::postgres::{Cluster, Options};

const WORKERS: usize = 2;
/// Time limit for completing prepared transactions.
const LIMIT: Duration = Duration::from_secs(60);
/// Lists transactions between their two phases.
const PREPARED: &str = "SELECT gid FROM pg_prepared_xacts";

/// The coordinator and each worker are killed in turn, stay stopped for a while, and are started again.
pub(super) fn killed(ground: &Ground<'_>) -> Outcome {
    let missing = || "the extension Citus is not installed: tests/citus builds it from its source".to_owned();
    possible((!Cluster::can_have_workers()).then(missing))?;
    let cluster = Cluster::start(Options { workers: WORKERS, ..Options::default() });
    let mut rig = Rig::on(ground, &cluster);
    let url = rig.vault.url().to_owned();
    let mut left = 0;
    rig.rounds(30, |rig, round| {
        let (delay, away) = (rig.random.millis(20, 1_000), rig.random.millis(1, 3_000));
        let node = round % (WORKERS + 1);
        let postmaster = i32::try_from(cluster.postmasters()[node]).unwrap();
        rig.work(|| {
            thread::sleep(delay);
            end_all(postmaster, Signal::KILL);
            thread::sleep(away);
            match node {
                0 => cluster.resume(),
                worker => cluster.resume_worker(worker),
            }
            // Time for requests after the node runs again.
            thread::sleep(Duration::from_millis(200));
        });
        left += prepared_names(&cluster, &url).len();
        rig.heal();
    });
    // The coordinator recovers transactions automatically once a minute. Maintenance also runs transactions.
    let started = Instant::now();
    let mut still = prepared_names(&cluster, &url);
    while !still.is_empty() && started.elapsed() < LIMIT {
        cluster.execute(&url, "SELECT recover_prepared_transactions()");
        let now = prepared_names(&cluster, &url);
        still.retain(|name| now.contains(name));
    }
    if !still.is_empty() {
        rig.lose(format!("transactions wait between their two phases and are not finished: {still:?}"));
    }
    rig.report.figure("transactions left between their two phases, and finished", left);
    finish(rig)
}

/// Returns the transactions between their two phases on all nodes.
fn prepared_names(cluster: &Cluster, url: &str) -> BTreeSet<String> {
    let workers = (1..=WORKERS).map(|worker| cluster.execute_on_worker(worker, url, PREPARED));
    let names = workers.chain([cluster.execute(url, PREPARED)]);
    names.flat_map(|names| names.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}
