//! The primary of a cluster is killed under load, and its standby takes over.

use super::Ground;
use crate::cluster::{self, Patroni};
use crate::log::Counter;
use crate::network::{self, Here, Network, Rule};
use crate::report::Report;
use crate::rig::Rig;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use vault_tests::Vault;

/// Time limit from the promotion to an acknowledged write. Clients may wait up to 10 s for an earlier response.
const HEALED: Duration = Duration::from_secs(15);

/// With a synchronous standby, no write is lost.
pub(super) fn synchronous(ground: &Ground<'_>) -> Report {
    happen("failover", ground, true)
}

/// With an asynchronous standby, the last acknowledged writes may be lost. They are counted but do not fail the
/// campaign.
pub(super) fn asynchronous(ground: &Ground<'_>) -> Report {
    let mut report = happen("failover-asynchronous", ground, false);
    report.count_lost("before a death");
    report
}

/// The primary runs and reaches its standby and its clients, but etcd in one direction only. It must step down, the
/// standby must take over, and no write may be lost.
pub(super) fn etcd_cut(ground: &Ground<'_>) -> Report {
    if let Some(why) = cluster::impossible().or_else(network::impossible) {
        return Report::skipped("etcd-cut", ground.database, &why);
    }
    let network = Network::new(2);
    let cluster = Patroni::start_on(&ground.options.log_dir, true, Some(&network));
    let mut rig = rig("etcd-cut", ground, &cluster).share(ground);
    let others = [rig.replica(), rig.replica()];
    let addresses: Vec<SocketAddr> = others.iter().map(|server| server.address).chain([rig.address]).collect();
    let mut random = ground.random();
    let (mut promoted, mut healed) = (Vec::new(), Vec::new());
    for round in 0..ground.options.rounds(10) {
        let (delay, old) = (random.millis(200, 900), cluster.primary().expect("a primary"));
        let cut = match round % 2 {
            0 => Rule::LoseFrom(old, Here::Etcd, 100),
            _ => Rule::LoseTo(old, Here::Etcd, 100),
        };
        let counter = rig.log.counter();
        let (promotion, heal) = rig.work_on(&addresses, || {
            std::thread::sleep(delay);
            let started = Instant::now();
            network.set(&[cut]);
            cluster.wait_for_another_than(old);
            let promotion = started.elapsed();
            let heal = wait_for_another(&counter);
            network.set(&[]);
            (promotion, heal)
        });
        evaluate(&mut rig, round, heal);
        promoted.push(promotion);
        healed.push(heal);
        cluster.wait_until_safe(true);
        rig.wait_until_it_writes();
        others.iter().for_each(|server| rig.marks.read(server));
        rig.check();
    }
    rig.report.figure("packets lost", network.lost());
    rig.report.times("from the cut to the promotion", promoted);
    rig.report.times("from the promotion to the next write", healed);
    drop(others);
    rig.finish()
}

/// Creates a vault on the cluster.
fn rig(name: &'static str, ground: &Ground<'_>, cluster: &Patroni) -> Rig {
    let mut create = Command::new("psql");
    create.args(["--no-psqlrc", "--quiet", "--command", "CREATE DATABASE orgvault", "--dbname"]);
    super::disk::run(create.arg(cluster.url("postgres")));
    Rig::of(name, ground, Vault::absent_in(&ground.options.shared.dir, Some(cluster.url("orgvault"))))
}

/// Waits until another write is acknowledged, and returns the time.
fn wait_for_another(counter: &Counter) -> Duration {
    let (before, started) = (counter.acknowledged(), Instant::now());
    while counter.acknowledged() == before && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    started.elapsed()
}

fn evaluate(rig: &mut Rig, round: usize, heal: Duration) {
    if heal > HEALED {
        rig.report.losses.push(format!("round {round}: the first write came {heal:?} after the promotion"));
    }
}

fn happen(name: &'static str, ground: &Ground<'_>, is_synchronous: bool) -> Report {
    if let Some(why) = cluster::impossible() {
        return Report::skipped(name, ground.database, &why);
    }
    let mut cluster = Patroni::start(&ground.options.log_dir, is_synchronous);
    let rig = rig(name, ground, &cluster);
    // An asynchronous standby may lose acknowledged writes, so the histories of its clients need not be linearizable.
    let mut rig = if is_synchronous { rig.share(ground) } else { rig };
    let others = [rig.replica(), rig.replica()];
    let addresses: Vec<SocketAddr> = others.iter().map(|server| server.address).chain([rig.address]).collect();
    let mut random = ground.random();
    let (mut promoted, mut healed) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..ground.options.rounds(20) {
        let delay = random.millis(200, 900);
        let old = cluster.primary().expect("a primary");
        let counter = rig.log.counter();
        let (promotion, heal) = rig.work_on(&addresses, || {
            std::thread::sleep(delay);
            let started = Instant::now();
            // In turn, a whole host fails and only the server.
            if round % 2 == 0 {
                cluster.kill(old)
            } else {
                cluster.kill_server(old)
            }
            cluster.wait_for_another_than(old);
            let promotion = started.elapsed();
            (promotion, wait_for_another(&counter))
        });
        evaluate(&mut rig, round, heal);
        promoted[round % 2].push(promotion);
        healed.push(heal);
        cluster.revive(old);
        cluster.wait_until_safe(is_synchronous);
        rig.wait_until_it_writes();
        rig.check();
    }
    let [machine, server] = promoted;
    rig.report.times("from a machine's death to the promotion", machine);
    rig.report.times("from a server's death to the promotion", server);
    rig.report.times("from the promotion to the next write", healed);
    others.iter().for_each(|server| rig.marks.read(server));
    drop(others);
    rig.finish()
}
