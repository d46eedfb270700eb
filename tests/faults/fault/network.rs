//! The network between the service and PostgreSQL loses responses, hangs, or is slow.

use super::Ground;
use crate::proxy::{Mode, Proxy};
use crate::report::Report;
use crate::rig::Rig;
use std::path::PathBuf;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::Vault;
use vault_tests::process::free_address;

/// Time for which the network hangs.
const HANGING: Duration = Duration::from_secs(12);
/// Time limit of requests while the network hangs: a change waits at most 7 s, after a wait for a connection.
const LONGEST: Duration = Duration::from_secs(10);

/// Creates a vault that reaches its database server through a proxy.
pub(super) fn behind_a_proxy(name: &'static str, ground: &Ground<'_>, cluster: &Cluster) -> (Rig, Proxy) {
    let url = cluster.create_database();
    let (server, database) = url.rsplit_once('/').unwrap();
    let proxy = Proxy::start(free_address(), &directory(server).join(".s.PGSQL.5432"), ground.random());
    let vault = Vault::absent_in(&ground.options.shared.dir, Some(url.clone())).set_up();
    let through = format!("postgres://postgres@{}/{database}?sslmode=disable", proxy.address);
    let rig = Rig::through(name, ground, vault, &through).share(ground);
    (rig, proxy)
}

/// Returns the directory of a server's socket: the percent-decoded host of its address.
pub(super) fn directory(server: &str) -> PathBuf {
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
pub(super) fn lost_commits(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy("lost-commits", ground, &cluster);
    for _ in 0..ground.options.rounds(50) {
        proxy.set(Mode::LoseCommits);
        rig.work(|| std::thread::sleep(Duration::from_millis(500)));
        proxy.set(Mode::Pass);
        rig.wait_until_it_answers();
        rig.check();
    }
    let lost = proxy.lost();
    rig.report.figure("answers to COMMIT lost", lost);
    if lost == 0 {
        rig.report.losses.push("no answer was lost, so nothing was tested".to_owned());
    }
    rig.finish()
}

/// The network accepts connections and bytes and forwards nothing.
pub(super) fn hanging(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy("network-hangs", ground, &cluster);
    let mut healed = Vec::new();
    for _ in 0..ground.options.rounds(3) {
        rig.work(|| {
            std::thread::sleep(Duration::from_millis(300));
            proxy.set(Mode::Hang);
            std::thread::sleep(HANGING);
            proxy.set(Mode::Pass);
        });
        healed.push(rig.heal());
        rig.check();
    }
    rig.report.slowest_answer(LONGEST);
    rig.report.times("from forwarding to the next write", healed);
    rig.finish()
}

/// The network is slow.
pub(super) fn slow(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options::default());
    let (mut rig, proxy) = behind_a_proxy("slow-network", ground, &cluster);
    proxy.set(Mode::Slow);
    for _ in 0..ground.options.rounds(10) {
        rig.work(|| std::thread::sleep(Duration::from_secs(3)));
        rig.check();
    }
    proxy.set(Mode::Pass);
    let slowest = rig.report.tally.slowest;
    rig.report.figure("slowest answer", format!("{:.1} s", slowest.as_secs_f64()));
    rig.finish()
}
