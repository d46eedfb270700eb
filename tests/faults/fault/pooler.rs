//! The service runs behind pgbouncer, which is killed and started again.

use super::Ground;
use super::network::directory;
use crate::report::Report;
use crate::rig::Rig;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use vault_testkit::postgres::{Cluster, Options};
use vault_tests::Vault;
use vault_tests::process::free_address;

pub(super) fn restarted(ground: &Ground<'_>) -> Report {
    if Command::new("pgbouncer").arg("--version").output().is_err() {
        return Report::skipped("pooler", ground.database, "pgbouncer is not installed");
    }
    let cluster = Cluster::start(Options::default());
    let url = cluster.create_database();
    let (server, database) = url.rsplit_once('/').unwrap();
    let socket = directory(server);
    let place = tempfile::tempdir().unwrap();
    let address = free_address();
    let vault = Vault::absent_in(&ground.options.shared.dir, Some(url.clone())).set_up();
    let mut pooler = Pooler::start(place.path(), &socket, address);
    let through = format!("postgres://postgres@{address}/{database}?sslmode=disable");
    let mut rig = Rig::through("pooler", ground, vault, &through).share(ground);
    let (mut random, mut healed) = (ground.random(), Vec::new());
    for _ in 0..ground.options.rounds(30) {
        let delay = random.millis(20, 500);
        pooler = rig.work(|| {
            std::thread::sleep(delay);
            drop(pooler);
            Pooler::start(place.path(), &socket, address)
        });
        healed.push(rig.heal());
        rig.check();
    }
    rig.report.times("from the pooler's start to the next write", healed);
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
        let status = Command::new("chown").arg("-R").arg(&owner).arg(place).status().unwrap();
        assert!(status.success());
        let mut pgbouncer = Command::new("setpriv");
        pgbouncer.args(["--reuid", &owner, "--clear-groups", "--pdeathsig", "KILL", "--", "pgbouncer", "--quiet"]);
        let child = pgbouncer.arg(settings).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self(child)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
