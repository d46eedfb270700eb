//! Processes of PostgreSQL, or of the connection pooler in front of it, are terminated.

use super::proxy::socket_directory;
use super::{Ground, Outcome};
use crate::rig::Rig;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::Vault;
use vault_tests::process::free_address;

pub(super) const OURS: &str = "FROM pg_stat_activity WHERE application_name = 'orgvault'";

/// An operator terminates connections, and processes of connections are killed, which makes the whole server restart.
pub(super) fn connections(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options::default());
    let mut rig = Rig::on(ground, &cluster).share();
    let url = rig.vault.url().to_owned();
    rig.rounds(50, |rig, round| {
        let moments: Vec<Duration> = (0..5).map(|_| rig.random.millis(5, 100)).collect();
        rig.work(|| {
            for moment in moments {
                thread::sleep(moment);
                cluster.execute(&url, &format!("SELECT count(pg_terminate_backend(pid)) {OURS}"));
            }
            if round % 5 == 4 {
                let one = cluster.execute(&url, &format!("SELECT pid {OURS} LIMIT 1"));
                if let Some(id) = one.parse().ok().and_then(Pid::from_raw) {
                    let _ = kill_process(id, Signal::KILL); // it may have exited
                }
            }
        });
        rig.heal();
    });
    finish(rig)
}

/// The server is killed with SIGKILL or with the signal of an immediate stop, and started again.
pub(super) fn killed(ground: &Ground<'_>) -> Outcome {
    let cluster = Cluster::start(Options::default());
    let mut rig = Rig::on(ground, &cluster).share();
    let url = rig.vault.url().to_owned();
    rig.rounds(100, |rig, round| {
        let delay = rig.random.millis(20, 1_500);
        let postmaster = postmaster(&cluster, &url);
        rig.work(|| {
            thread::sleep(delay);
            end_all(postmaster, if round % 2 == 0 { Signal::KILL } else { Signal::QUIT });
            cluster.resume();
        });
        rig.heal();
    });
    finish(rig)
}

/// The service runs behind pgbouncer, which is killed and started again.
pub(super) fn pooler(ground: &Ground<'_>) -> Outcome {
    Command::new("pgbouncer").arg("--version").output().map_err(|_| "pgbouncer is not installed")?;
    let cluster = Cluster::start(Options::default());
    let url = cluster.create_database();
    let (server, database) = url.rsplit_once('/').unwrap();
    let socket = socket_directory(server);
    let place = tempfile::tempdir().unwrap();
    let address = free_address();
    let vault = Vault::absent_in(&ground.options.shared.dir, Some(url.clone())).set_up();
    let mut pooler = Some(Pooler::start(place.path(), &socket, address));
    let through = format!("postgres://postgres@{address}/{database}?sslmode=disable");
    let mut rig = Rig::served(ground, vault, Some(through)).share();
    rig.rounds(30, |rig, _| {
        let delay = rig.random.millis(20, 500);
        rig.work(|| {
            thread::sleep(delay);
            drop(pooler.take());
            pooler = Some(Pooler::start(place.path(), &socket, address));
        });
        rig.heal();
    });
    let report = rig.finish();
    drop(pooler);
    report
}

/// A pooler in session mode: each client gets a separate connection. Killed on drop.
struct Pooler(Child);

impl Pooler {
    fn start(place: &Path, server: &Path, address: SocketAddr) -> Self {
        let (settings, users) = (place.join("pgbouncer.ini"), place.join("users"));
        let text = format!(
            "[databases]\n* = host={}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = session\n",
            server.display(),
            address.ip(),
            address.port(),
            users.display(),
        );
        fs::write(&settings, text).unwrap();
        fs::write(&users, "\"postgres\" \"\"\n").unwrap();
        // pgbouncer does not run as root. The user of the server can access the directory of the socket.
        let owner = fs::metadata(server).unwrap().uid().to_string();
        super::run(Command::new("chown").arg("-R").arg(&owner).arg(place));
        let mut pgbouncer = Command::new("setpriv");
        pgbouncer.args(["--reuid", &owner, "--clear-groups", "--pdeathsig", "KILL", "--", "pgbouncer", "--quiet"]);
        Self(pgbouncer.arg(settings).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the PID of the server's first process.
pub(super) fn postmaster(cluster: &Cluster, url: &str) -> i32 {
    cluster.execute(url, "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)").parse().unwrap()
}

/// Makes the last checks, also of tables and indexes.
pub(super) fn finish(rig: Rig<'_>) -> Outcome {
    let url = rig.vault.url().to_owned();
    let mut report = rig.finish()?;
    match amcheck(&url) {
        Some(Ok(())) => report.figure("pg_amcheck", "clean"),
        Some(Err(wrong)) => report.losses.push(wrong),
        None => report.figure("pg_amcheck", "not installed: indexes were not compared with tables"),
    }
    Ok(report)
}

/// Checks tables and indexes with `pg_amcheck`. Returns `None` if it cannot run.
pub(super) fn amcheck(url: &str) -> Option<Result<(), String>> {
    let programs = crate::cluster::programs().unwrap_or_default();
    let mut check = Command::new(programs.join("pg_amcheck"));
    let output = check.args(["--install-missing", "--heapallindexed", url]).output().ok()?;
    let wrong = || format!("pg_amcheck: {}", String::from_utf8_lossy(&output.stdout));
    Some(if output.status.success() { Ok(()) } else { Err(wrong()) })
}

/// Sends a terminating signal to a server, and waits until its other processes have exited.
pub(super) fn end_all(postmaster: i32, signal: Signal) {
    let children = fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).unwrap_or_default();
    let _ = kill_process(Pid::from_raw(postmaster).unwrap(), signal); // it may have exited
    let ids = children.split_whitespace().filter_map(|id| id.parse().ok()).chain([postmaster]);
    for id in ids.filter_map(Pid::from_raw) {
        // Orphans become children of this process. A zombie must be reaped because PostgreSQL would still find the PID
        // of its file.
        while test_kill_process(id).is_ok() {
            if waitpid(Some(id), WaitOptions::NOHANG).is_err() {
                thread::yield_now(); // a child of another process
            }
        }
    }
}
