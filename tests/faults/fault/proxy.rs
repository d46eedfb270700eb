//! The network between the service and PostgreSQL loses responses, hangs, or is slow, alone and with another fault.

use super::server::{OURS, end_all, finish, postmaster};
use super::{Ground, Outcome};
use crate::proxy::{Mode, Proxy};
use crate::rig::{Rig, wait};
use rustix::process::Signal;
use simulated_disk::random::Random;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::Vault;
use vault_tests::process::{Server, free_address};

/// Creates a vault that reaches its database server through a proxy.
fn behind_a_proxy<'a>(ground: &Ground<'a>, cluster: &Cluster) -> (Rig<'a>, Proxy) {
    let url = cluster.create_database();
    let (server, database) = url.rsplit_once('/').unwrap();
    let proxy = Proxy::start(free_address(), &socket_directory(server).join(".s.PGSQL.5432"), ground.random());
    let vault = Vault::absent_in(&ground.options.shared.dir, Some(url.clone())).set_up();
    let through = format!("postgres://postgres@{}/{database}?sslmode=disable", proxy.address);
    (Rig::served(ground, vault, Some(through)).share(), proxy)
}

/// Returns the directory of a server's socket: the percent-decoded host of its address.
pub(super) fn socket_directory(server: &str) -> PathBuf {
    let mut pieces = server.rsplit('@').next().unwrap().split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at(2);
        text.push(char::from(u8::from_str_radix(code, 16).unwrap()));
        text.push_str(rest);
    }
    PathBuf::from(text)
}

/// The response to a COMMIT is lost. The write may or may not be stored and is not acknowledged. A repetition has one
/// effect.
pub(super) fn lost_commits(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy(ground, &cluster);
    rig.rounds(50, |rig, _| {
        proxy.set(Mode::LoseCommits);
        rig.work(wait(500));
        proxy.set(Mode::Pass);
        rig.wait_until_it_answers();
    });
    rig.tested("answers to COMMIT lost", proxy.lost());
    rig.finish()
}

/// The network accepts connections and bytes and forwards nothing.
pub(super) fn hanging(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy(ground, &cluster);
    rig.rounds(3, |rig, _| {
        rig.work(|| {
            thread::sleep(Duration::from_millis(300));
            proxy.set(Mode::Hang);
            thread::sleep(Duration::from_secs(12));
            proxy.set(Mode::Pass);
        });
        rig.heal();
    });
    // A change waits at most 7 s, after a wait for a connection.
    rig.report.slowest_answer(Duration::from_secs(10));
    rig.finish()
}

/// The network is slow.
pub(super) fn slow(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy(ground, &cluster);
    proxy.set(Mode::Slow);
    rig.rounds(10, |rig, _| rig.work(wait(3_000)));
    proxy.set(Mode::Pass);
    rig.report.slowest_answer(Duration::MAX);
    rig.finish()
}

/// Each pair of the faults that a vault on PostgreSQL with three replicas can have at the same time.
pub(super) fn pairs(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy(ground, &cluster);
    let url = rig.vault.url().to_owned();
    let pairs = random_pairs(&mut rig.random);
    rig.rounds(pairs.len(), |rig, round| {
        let [one, two] = pairs[round % pairs.len()];
        let times = [(); 2].map(|()| (rig.random.millis(20, 400), rig.random.millis(300, 1_500)));
        let replicas = [rig.replica(), rig.replica()];
        let addresses = rig.and_addresses_of(&replicas);
        let scene = Scene { cluster: &cluster, url: &url, postmaster: postmaster(&cluster, &url), proxy: &proxy };
        let [left, right] = replicas;
        let kept = rig.work_on(&addresses, || {
            thread::scope(|scope| {
                let scene = &scene;
                let one = scope.spawn(move || scene.happens(one, left, times[0]));
                let two = scope.spawn(move || scene.happens(two, right, times[1]));
                [one, two].map(|ended| ended.join().unwrap())
            })
        });
        rig.heal();
        kept.iter().flatten().for_each(|server| rig.branches.read(server));
        rig.cause = format!(" (after {one:?} and {two:?})");
    });
    finish(rig)
}

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

use One::{CommitsLost, ConnectionsEnded, DatabaseKilled, NetworkHangs, NetworkSlow, ReplicaKilled, ReplicaStopped};

/// Returns the pairs in random order. Pairs of two network faults are omitted because the rig has one proxy.
fn random_pairs(random: &mut Random) -> Vec<[One; 2]> {
    const ALL: [One; 7] =
        [ReplicaKilled, ReplicaStopped, ConnectionsEnded, DatabaseKilled, CommitsLost, NetworkHangs, NetworkSlow];
    let mut pairs = Vec::new();
    for (place, one) in ALL.iter().enumerate() {
        // The last three are of the network.
        let others = if place < 4 { &ALL[place + 1..] } else { &[] };
        pairs.extend(others.iter().map(|two| [*one, *two]));
    }
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
    fn happens(&self, what: One, replica: Server, (delay, lasts): (Duration, Duration)) -> Option<Server> {
        thread::sleep(delay); // at a random moment
        match what {
            ReplicaKilled => {
                replica.kill();
                return None;
            }
            ReplicaStopped => {
                let status = replica.stop();
                assert_eq!(status, Some(0), "a replica that is stopped ends well");
                return None;
            }
            ConnectionsEnded => {
                let end = format!("SELECT count(pg_terminate_backend(pid)) {OURS}");
                let mut psql = Command::new("psql");
                psql.args(["--no-psqlrc", "--quiet", "--command", &end, "--dbname", self.url]);
                // The database may be down.
                let _ = psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            }
            DatabaseKilled => {
                end_all(self.postmaster, Signal::KILL);
                self.cluster.resume();
            }
            CommitsLost => self.network(Mode::LoseCommits, lasts),
            NetworkHangs => self.network(Mode::Hang, lasts),
            NetworkSlow => self.network(Mode::Slow, lasts),
        }
        Some(replica)
    }

    fn network(&self, mode: Mode, lasts: Duration) {
        self.proxy.set(mode);
        thread::sleep(lasts);
        self.proxy.set(Mode::Pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_drawn_once() {
        let of = |seed| random_pairs(&mut Random::of(seed, 0));
        let (mut some, others) = (of(1), of(2));
        assert_ne!(some, others);
        some.sort_by_key(|pair| format!("{pair:?}"));
        some.dedup();
        assert_eq!(some.len(), 18);
    }
}
