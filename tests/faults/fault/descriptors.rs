//! The process reaches its limit of open file descriptors.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Number of connections that use up the descriptors.
const IDLE: usize = 100;
/// Number of descriptors that the process can still open.
const SPARE: usize = 10;

pub(super) fn happen(ground: &Ground<'_>) -> Report {
    let mut rig = Rig::new("descriptors", ground);
    let mut healed = Vec::new();
    for _ in 0..ground.options.rounds(10) {
        let process = rig.running().id();
        let before = limit(process);
        let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        set_limit(process, &format!("{}:{}", open + SPARE, before.1));
        let address = rig.address;
        rig.work(|| {
            std::thread::sleep(Duration::from_millis(200)); // the clients connect
            let idle: Vec<_> =
                (0..IDLE).filter_map(|_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()).collect();
            std::thread::sleep(Duration::from_secs(2));
            drop(idle);
        });
        set_limit(process, &format!("{}:{}", before.0, before.1));
        rig.wait_until_it_answers();
        healed.push(rig.wait_until_it_writes());
        assert_eq!(rig.running().id(), process);
        rig.check();
    }
    rig.report.times("from new descriptors to the next write", healed);
    rig.finish()
}

/// Returns the soft and the hard limit.
fn limit(process: u32) -> (String, String) {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the limit");
    let mut words = line.split_whitespace().map(str::to_owned);
    (words.next().unwrap(), words.next().unwrap())
}

fn set_limit(process: u32, limits: &str) {
    let mut prlimit = Command::new("prlimit");
    let status = prlimit.arg(format!("--pid={process}")).arg(format!("--nofile={limits}")).status().unwrap();
    assert!(status.success(), "prlimit failed");
}
