//! Processes of PostgreSQL are terminated.

use super::Ground;
use crate::report::Report;
use crate::rig::Rig;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use std::fs;
use std::process::Command;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};

pub(super) const OURS: &str = "FROM pg_stat_activity WHERE application_name = 'orgvault'";

/// An operator terminates connections, and processes of connections are killed, which makes the whole server restart.
pub(super) fn connections(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options::default());
    let mut rig = Rig::on("connections", ground, &cluster).share(ground);
    let url = rig.vault.url().to_owned();
    let mut random = ground.random();
    let mut healed = Vec::new();
    for round in 0..ground.options.rounds(50) {
        let mut moments: Vec<Duration> = (0..5).map(|_| random.millis(5, 100)).collect();
        rig.work(|| {
            for moment in moments.drain(..) {
                std::thread::sleep(moment);
                cluster.execute(&url, &format!("SELECT count(pg_terminate_backend(pid)) {OURS}"));
            }
            if round % 5 == 4 {
                let one = cluster.execute(&url, &format!("SELECT pid {OURS} LIMIT 1"));
                if let Ok(id) = one.parse() {
                    kill(id);
                }
            }
        });
        healed.push(rig.heal());
        rig.check();
    }
    rig.report.times("from the last fault to the next write", healed);
    finish(rig)
}

/// The server is killed with SIGKILL or with the signal of an immediate stop, and started again.
pub(super) fn killed(ground: &Ground<'_>) -> Report {
    let cluster = Cluster::start(Options::default());
    let mut rig = Rig::on("database", ground, &cluster).share(ground);
    let url = rig.vault.url().to_owned();
    let mut random = ground.random();
    let mut healed = Vec::new();
    for round in 0..ground.options.rounds(100) {
        let delay = random.millis(20, 1_500);
        let postmaster = postmaster(&cluster, &url);
        rig.work(|| {
            std::thread::sleep(delay);
            // SIGKILL, and the signal of an immediate stop, in turn.
            end_all(postmaster, if round % 2 == 0 { Signal::KILL } else { Signal::QUIT });
            cluster.resume();
        });
        healed.push(rig.heal());
        rig.check();
    }
    rig.report.times("from the server's start to the next write", healed);
    finish(rig)
}

/// Returns the PID of the server's first process.
pub(super) fn postmaster(cluster: &Cluster, url: &str) -> i32 {
    cluster.execute(url, "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)").parse().unwrap()
}

pub(super) fn finish(rig: Rig) -> Report {
    let url = rig.vault.url().to_owned();
    let mut report = rig.finish();
    match amcheck(&url) {
        Some(Ok(())) => report.figure("pg_amcheck", "clean"),
        Some(Err(wrong)) => report.losses.push(wrong),
        None => report.figure("pg_amcheck", "not installed: indexes were not compared with tables"),
    }
    report
}

/// Checks tables and indexes with `pg_amcheck`. Returns `None` if it cannot run.
pub(super) fn amcheck(url: &str) -> Option<Result<(), String>> {
    let programs = crate::cluster::programs().unwrap_or_default();
    let mut check = Command::new(programs.join("pg_amcheck"));
    let output = check.args(["--install-missing", "--heapallindexed", url]).output().ok()?;
    let wrong = || format!("pg_amcheck: {}", String::from_utf8_lossy(&output.stdout));
    Some(if output.status.success() { Ok(()) } else { Err(wrong()) })
}

fn kill(id: i32) {
    let _ = kill_process(Pid::from_raw(id).unwrap(), Signal::KILL); // it may have exited
}

/// Sends a terminating signal to a server, and waits until its other processes have exited.
pub(super) fn end_all(postmaster: i32, signal: Signal) {
    let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).unwrap_or_default();
    let _ = kill_process(Pid::from_raw(postmaster).unwrap(), signal); // it may have exited
    let ids = children.split_whitespace().filter_map(|id| id.parse().ok()).chain([postmaster]);
    for id in ids {
        let id = Pid::from_raw(id).unwrap();
        // Orphans become children of this process. A zombie must be reaped because PostgreSQL would still find the PID
        // of its file.
        while test_kill_process(id).is_ok() {
            if waitpid(Some(id), WaitOptions::NOHANG).is_err() {
                std::thread::yield_now(); // a child of another process
            }
        }
    }
}
