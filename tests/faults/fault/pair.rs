//! Two concurrent faults: each pair of the faults that a vault on PostgreSQL with three replicas can have at the same
//! time.

use super::Ground;
use super::network::behind_a_proxy;
use super::server::{OURS, end_all, finish, postmaster};
use crate::proxy::{Mode, Proxy};
use crate::random::Random;
use crate::report::Report;
use rustix::process::Signal;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::process::Server;

/// One fault of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum One {
    ReplicaKilled,
    ReplicaStopped,
    ConnectionsEnded,
    DatabaseKilled,
    CommitsLost,
    NetworkHangs,
    NetworkSlow,
}

impl One {
    const ALL: [Self; 7] = [
        Self::ReplicaKilled,
        Self::ReplicaStopped,
        Self::ConnectionsEnded,
        Self::DatabaseKilled,
        Self::CommitsLost,
        Self::NetworkHangs,
        Self::NetworkSlow,
    ];

    const fn is_of_the_network(self) -> bool {
        matches!(self, Self::CommitsLost | Self::NetworkHangs | Self::NetworkSlow)
    }
}

/// Returns the pairs in random order. Pairs of two network faults are omitted because the rig has one proxy.
fn pairs(random: &mut Random) -> Vec<[One; 2]> {
    let all = One::ALL.iter().enumerate();
    let mut pairs: Vec<_> = all.flat_map(|(place, one)| One::ALL[place + 1..].iter().map(|two| [*one, *two])).collect();
    pairs.retain(|[one, two]| !(one.is_of_the_network() && two.is_of_the_network()));
    for place in (1..pairs.len()).rev() {
        pairs.swap(place, random.below(place + 1));
    }
    pairs
}

/// The targets of the faults: a replica to kill, a replica to stop, the database, and the network of the first server.
struct Scene<'a> {
    cluster: &'a Cluster,
    url: &'a str,
    postmaster: i32,
    proxy: &'a Proxy,
}

impl Scene<'_> {
    /// Starts a fault after `delay` and ends it after `lasts`. Returns the replica, unless the fault ended it.
    fn happens(&self, what: One, replica: Server, delay: Duration, lasts: Duration) -> Option<Server> {
        thread::sleep(delay); // at a random moment
        match what {
            One::ReplicaKilled => {
                replica.kill();
                return None;
            }
            One::ReplicaStopped => {
                let status = replica.stop();
                assert_eq!(status, Some(0), "a replica that is stopped ends well");
                return None;
            }
            One::ConnectionsEnded => {
                let end = format!("SELECT count(pg_terminate_backend(pid)) {OURS}");
                let mut psql = Command::new("psql");
                psql.args(["--no-psqlrc", "--quiet", "--command", &end, "--dbname", self.url]);
                // The database may be down.
                let _ = psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            }
            One::DatabaseKilled => {
                end_all(self.postmaster, Signal::KILL);
                self.cluster.resume();
            }
            One::CommitsLost => self.network(Mode::LoseCommits, lasts),
            One::NetworkHangs => self.network(Mode::Hang, lasts),
            One::NetworkSlow => self.network(Mode::Slow, lasts),
        }
        Some(replica)
    }

    fn network(&self, mode: Mode, lasts: Duration) {
        self.proxy.set(mode);
        thread::sleep(lasts);
        self.proxy.set(Mode::Pass);
    }
}

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy("pairs", ground, &cluster);
    let url = rig.vault.url().to_owned();
    let mut random = ground.random();
    let pairs = pairs(&mut random);
    let (mut healed, mut happened) = (Vec::new(), Vec::new());
    for round in 0..ground.options.rounds(pairs.len()) {
        let [one, two] = pairs[round % pairs.len()];
        let mut times = || (random.millis(20, 400), random.millis(300, 1_500));
        let (first, second) = (times(), times());
        let replicas = [rig.replica(), rig.replica()];
        let addresses: Vec<SocketAddr> = replicas.iter().map(|server| server.address).chain([rig.address]).collect();
        let scene = Scene { cluster: &cluster, url: &url, postmaster: postmaster(&cluster, &url), proxy: &proxy };
        let [left, right] = replicas;
        let kept = rig.work_on(&addresses, || {
            thread::scope(|scope| {
                let scene = &scene;
                let one = scope.spawn(move || scene.happens(one, left, first.0, first.1));
                let two = scope.spawn(move || scene.happens(two, right, second.0, second.1));
                [one, two].map(|ended| ended.join().unwrap())
            })
        });
        healed.push(rig.heal());
        kept.iter().flatten().for_each(|server| rig.marks.read(server));
        drop(kept);
        let before = rig.report.losses.len();
        rig.check();
        for loss in &mut rig.report.losses[before..] {
            *loss = format!("{loss} (after {one:?} and {two:?})");
        }
        if !happened.contains(&(one, two)) {
            happened.push((one, two));
        }
    }
    rig.report.figure("pairs", happened.len());
    rig.report.times("from the end of both to the next write", healed);
    finish(rig)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_drawn_once() {
        let of = |seed| pairs(&mut Random::of(seed, 0));
        let (mut some, mut others) = (of(1), of(2));
        assert_eq!(some.len(), 18);
        assert_ne!(some, others);
        some.sort_by_key(|pair| format!("{pair:?}"));
        others.sort_by_key(|pair| format!("{pair:?}"));
        assert_eq!(some, others);
        some.dedup();
        assert_eq!(some.len(), 18);
    }
}
