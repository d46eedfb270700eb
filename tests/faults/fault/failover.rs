//! The primary of a cluster fails under load, and its standby takes over.

use super::{Ground, Outcome, possible};
use crate::cluster::{self, Patroni};
use crate::log::Counter;
use crate::network::{self, Here, Network, Rule};
use crate::rig::Rig;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::Vault;
use vault_tests::process::Server;

/// Time limit from the promotion to an acknowledged write. Clients may wait up to 10 s for an earlier response.
const HEALED: Duration = Duration::from_secs(15);

/// With a synchronous standby, no write is lost. In turn, a whole host fails and only the server.
pub(super) fn synchronous(ground: &Ground<'_>) -> Outcome {
    killed(ground, true)
}

/// With an asynchronous standby, the last acknowledged writes may be lost. They are counted but do not fail the
/// campaign.
pub(super) fn asynchronous(ground: &Ground<'_>) -> Outcome {
    let mut report = killed(ground, false)?;
    report.count_lost("before a death");
    Ok(report)
}

fn killed(ground: &Ground<'_>, is_synchronous: bool) -> Outcome {
    possible(cluster::impossible())?;
    let mut cluster = Patroni::start(&ground.options.log_dir, is_synchronous);
    let rig = rig(ground, &cluster);
    // An asynchronous standby may lose acknowledged writes, so the histories of its clients need not be linearizable.
    let mut rig = if is_synchronous { rig.share() } else { rig };
    let others = [rig.replica(), rig.replica()];
    let mut times = Times::default();
    rig.rounds(20, |rig, round| {
        let old = cluster.primary().expect("a primary");
        let kill = |cluster: &mut Patroni| if round % 2 == 0 { cluster.kill(old) } else { cluster.kill_server(old) };
        times.take_over(rig, &others, &mut cluster, old, kill);
        cluster.revive(old);
        cluster.wait_until_safe(is_synchronous);
        rig.wait_until_it_writes();
    });
    times.finish(rig, &others)
}

/// The primary runs and reaches its standby and its clients, but etcd in one direction only. It must step down, the
/// standby must take over, and no write may be lost.
pub(super) fn etcd_cut(ground: &Ground<'_>) -> Outcome {
    possible(cluster::impossible().or_else(network::impossible))?;
    let network = Network::new(2);
    let mut cluster = Patroni::start_on(&ground.options.log_dir, true, Some(&network));
    let mut rig = rig(ground, &cluster).share();
    let others = [rig.replica(), rig.replica()];
    let mut times = Times::default();
    rig.rounds(10, |rig, round| {
        let old = cluster.primary().expect("a primary");
        let direction = if round % 2 == 0 { Rule::LoseFrom } else { Rule::LoseTo };
        times.take_over(rig, &others, &mut cluster, old, |_| network.set(&[direction(old, Here::Etcd, 100)]));
        network.set(&[]);
        cluster.wait_until_safe(true);
        rig.wait_until_it_writes();
    });
    rig.report.figure("packets lost", network.lost());
    times.finish(rig, &others)
}

/// Creates a vault on the cluster.
fn rig<'a>(ground: &Ground<'a>, cluster: &Patroni) -> Rig<'a> {
    let mut create = Command::new("psql");
    create.args(["--no-psqlrc", "--quiet", "--command", "CREATE DATABASE orgvault", "--dbname"]);
    super::run(create.arg(cluster.url("postgres")));
    Rig::of(ground, Vault::absent_in(&ground.options.shared.dir, Some(cluster.url("orgvault"))))
}

/// Times from faults to promotions, and from promotions to the next acknowledged writes.
#[derive(Default)]
struct Times {
    promoted: Vec<Duration>,
    healed: Vec<Duration>,
}

impl Times {
    /// Causes a fault of the primary `old` while clients write to all replicas, until another node has taken over.
    fn take_over(
        &mut self,
        rig: &mut Rig<'_>,
        others: &[Server],
        cluster: &mut Patroni,
        old: usize,
        fault: impl FnOnce(&mut Patroni),
    ) {
        let (delay, counter, addresses) =
            (rig.random.millis(200, 900), rig.log.counter(), rig.and_addresses_of(others));
        let (promotion, heal) = rig.work_on(&addresses, || {
            thread::sleep(delay);
            let started = Instant::now();
            fault(cluster);
            cluster.wait_for_another_than(old);
            (started.elapsed(), wait_for_another(&counter))
        });
        if heal > HEALED {
            rig.lose(format!("the first write came {heal:?} after the promotion"));
        }
        self.promoted.push(promotion);
        self.healed.push(heal);
        others.iter().for_each(|server| rig.branches.read(server));
    }

    fn finish(self, mut rig: Rig<'_>, others: &[Server]) -> Outcome {
        rig.report.times("from the fault to the promotion", self.promoted);
        rig.report.times("from the promotion to the next write", self.healed);
        others.iter().for_each(|server| rig.branches.read(server));
        rig.finish()
    }
}

/// Waits until another write is acknowledged, and returns the time.
fn wait_for_another(counter: &Counter) -> Duration {
    let (before, started) = (counter.acknowledged(), Instant::now());
    while counter.acknowledged() == before && started.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    started.elapsed()
}
