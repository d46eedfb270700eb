//! Several replicas on one PostgreSQL server that allows few connections, or replicas that are restarted in turn.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use std::net::SocketAddr;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::process::Server;

/// Three replicas want thirty connections of a server that allows ten.
pub(super) fn few_connections(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options { max_connections: 13, ..Options::default() }); // three for a superuser
    let mut rig = Rig::on("few-connections", ground, &cluster).share(ground);
    for _ in 0..ground.options.rounds(5) {
        let others = [rig.replica(), rig.replica()];
        let addresses: Vec<SocketAddr> = others.iter().map(|server| server.address).chain([rig.address]).collect();
        rig.work_on(&addresses, || std::thread::sleep(Duration::from_secs(3)));
        rig.wait_until_it_writes();
        others.iter().for_each(|server| rig.marks.read(server));
        drop(others); // the commands of the check need a connection, too
        rig.check();
    }
    let slowest = rig.report.tally.slowest;
    rig.report.figure("slowest answer", format!("{:.1} s", slowest.as_secs_f64()));
    rig.finish()
}

/// The three replicas are restarted in turn. Clients switch to another replica if theirs does not respond. The first
/// one delivers events, and another one takes over the delivery.
pub(super) fn rolling(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("rolling-restart", ground).share(ground);
    let mut others: Vec<Server> = vec![rig.replica(), rig.replica()];
    for round in 0..ground.options.rounds(30) {
        let addresses: Vec<SocketAddr> = others.iter().map(|server| server.address).chain([rig.address]).collect();
        let is_first = round % 3 == 2;
        let stopped = if is_first { rig.server.take().expect("its server runs") } else { others.remove(round % 2) };
        rig.marks.read(&stopped);
        // Other replicas check every second whether they have to deliver events.
        let then = Duration::from_millis(if is_first { 1_500 } else { 200 });
        let ended = rig.work_on(&addresses, || {
            std::thread::sleep(Duration::from_millis(200));
            let ended = stopped.stop();
            std::thread::sleep(then);
            ended
        });
        if ended != Some(0) {
            rig.report.losses.push(format!("a replica ended with {ended:?}"));
        }
        others.iter().for_each(|server| rig.marks.read(server));
        if is_first {
            rig.serve();
        } else {
            others.push(rig.replica());
        }
        rig.check();
    }
    drop(others);
    rig.finish()
}
