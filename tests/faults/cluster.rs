//! Two PostgreSQL servers with Patroni and etcd on loopback. They stop on drop.

use crate::network::{Here, Network};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vault_tests::Client;
use vault_tests::process::free_address;

/// Time limit for the cluster to have a primary and a standby.
const LIMIT: Duration = Duration::from_secs(120);
const USER: &str = "postgres";

/// A PostgreSQL server with its Patroni.
struct Node {
    name: &'static str,
    /// The addresses of PostgreSQL and of the HTTP API of Patroni.
    server: SocketAddr,
    watcher: SocketAddr,
    /// The argument of `nsenter` for its network, if it has a simulated host.
    namespace: Option<String>,
    patroni: Option<Child>,
}

pub(crate) struct Patroni {
    nodes: Vec<Node>,
    etcd: Child,
    place: TempDir,
}

/// Returns the reason why a cluster cannot run here.
pub(crate) fn impossible() -> Option<String> {
    if !rustix::process::getuid().is_root() {
        return Some("only root can run PostgreSQL as another user".to_owned());
    }
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    match (has("patroni"), has("etcd"), programs()) {
        (true, true, Some(_)) => None,
        _ => Some("patroni, etcd or PostgreSQL is not installed (Debian: patroni, etcd-server, postgresql)".to_owned()),
    }
}

/// Returns the directory of PostgreSQL's programs, of the newest version that Debian's Patroni supports.
pub(crate) fn programs() -> Option<PathBuf> {
    let path = |version: u32| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"));
    (13..=17).rev().map(path).find(|path| path.join("initdb").is_file())
}

/// Runs the following command as the user of the servers. It exits with its parent.
const AS_USER: [&str; 9] = ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups", "--pdeathsig", "KILL", "--"];
/// Runs the following command as the first process of a PID namespace, which represents a host. All processes of the
/// namespace exit with it.
const AS_MACHINE: [&str; 10] =
    ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--"];

/// Creates a command that runs `program` through the commands in `words`.
fn through(words: &[&str], program: &str) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(program).current_dir("/").stdin(Stdio::null());
    command
}

impl Patroni {
    /// Starts a cluster. With `synchronous`, a commit is acknowledged after both servers have stored it.
    pub(crate) fn start(directory: &Path, synchronous: bool) -> Self {
        Self::start_on(directory, synchronous, None)
    }

    /// Starts a cluster with each server on a host of this network, and etcd on this program's side.
    pub(crate) fn start_on(directory: &Path, synchronous: bool, network: Option<&Network>) -> Self {
        let place = tempfile::Builder::new().prefix("orgvault-cluster-").tempdir_in(directory).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let etcd_at = |port| network.map_or_else(free_address, |_| SocketAddr::from((Here::Etcd.ip(), port)));
        let (clients, peers) = (etcd_at(2379), etcd_at(2380));
        let own = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            let status = Command::new("chown").arg(USER).arg(&path).status().unwrap();
            assert!(status.success());
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            path
        };
        let mut etcd = through(&AS_USER, "etcd");
        etcd.arg("--data-dir").arg(own("etcd")).args(["--name", "one", "--log-level", "error"]);
        etcd.arg(format!("--listen-client-urls=http://{clients}"))
            .arg(format!("--advertise-client-urls=http://{clients}"));
        etcd.arg(format!("--listen-peer-urls=http://{peers}"))
            .arg(format!("--initial-advertise-peer-urls=http://{peers}"));
        etcd.arg(format!("--initial-cluster=one=http://{peers}"));
        let etcd = etcd.stdout(log(&place, "etcd.log")).stderr(log(&place, "etcd.log")).spawn().unwrap();
        let mut nodes = Vec::new();
        // Not `first`: it is a keyword in the names of synchronous standbys, and Patroni does not quote it.
        for (number, name) in ["north", "south"].into_iter().enumerate() {
            let at = |port| network.map_or_else(free_address, |network| (network.address(number), port).into());
            let namespace = network.map(|network| network.namespace(number));
            let node = Node { name, server: at(5432), watcher: at(8008), namespace, patroni: None };
            let settings = settings(&node, clients, &own(name), synchronous);
            fs::write(place.path().join(format!("{name}.yml")), settings).unwrap();
            nodes.push(node);
        }
        let mut cluster = Self { nodes, etcd, place };
        // In sequence, so that the first server creates the database.
        cluster.run(0);
        cluster.wait(|cluster| cluster.primary() == Some(0));
        cluster.run(1);
        cluster.wait_until_safe(synchronous);
        cluster
    }

    /// Starts Patroni as the first process of its PID namespace, where it also reaps orphans: Patroni considers a
    /// server that it stopped alive until the process is reaped.
    fn run(&mut self, number: usize) {
        let Node { name, namespace, .. } = &self.nodes[number];
        let enter: Vec<&str> = namespace.iter().flat_map(|namespace| ["nsenter", namespace, "--"]).collect();
        let mut patroni = through(&[&enter, &AS_MACHINE[..], &AS_USER[..]].concat(), "patroni");
        patroni.arg(self.place.path().join(format!("{name}.yml")));
        let log = log(&self.place, &format!("{name}.log"));
        patroni.stdout(log.try_clone().unwrap()).stderr(log);
        self.nodes[number].patroni = Some(patroni.spawn().unwrap());
    }

    /// Returns the URL of a database with both hosts.
    pub(crate) fn url(&self, database: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| node.server.to_string()).collect();
        format!("postgres://{USER}@{}/{database}?sslmode=disable&target_session_attrs=read-write", hosts.join(","))
    }

    /// Returns the primary according to Patroni.
    pub(crate) fn primary(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|number| self.is(*number, "/primary"))
    }

    fn is(&self, number: usize, path: &str) -> bool {
        let answer = Client::new(self.nodes[number].watcher).get(path).try_send();
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// Waits until there is a primary and the standby has all acknowledged writes.
    pub(crate) fn wait_until_safe(&self, synchronous: bool) {
        self.wait(|cluster| {
            let Some(primary) = cluster.primary() else { return false };
            let standby = cluster.is(1 - primary, if synchronous { "/synchronous" } else { "/replica" });
            standby && cluster.streams(primary)
        });
    }

    /// Returns `true` if the other node streams from the primary.
    fn streams(&self, primary: usize) -> bool {
        let answer = Client::new(self.nodes[primary].watcher).get("/patroni").try_send();
        let state =
            answer.ok().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok()).unwrap_or_default();
        state["replication"].as_array().is_some_and(|standbys| standbys.iter().any(|one| one["state"] == "streaming"))
    }

    fn wait(&self, is_so: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(started.elapsed() < LIMIT, "the cluster does not come about: {}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.place.path().join(name)).unwrap_or_default();
        let end = |text: String| {
            text.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
        };
        ["etcd.log", "north.log", "south.log"].map(|name| format!("{name}:\n{}", end(read(name)))).join("\n")
    }

    /// Kills all processes of a node, as if its host had lost power.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut patroni) = self.nodes[number].patroni.take() {
            end(&mut patroni);
        }
    }

    /// Kills the server of a node but not its Patroni.
    pub(crate) fn kill_server(&self, number: usize) {
        let Node { name, patroni, .. } = &self.nodes[number];
        let file = self.place.path().join(name).join("data/postmaster.pid");
        let file = fs::read_to_string(file).expect("its server runs");
        let postmaster = file.lines().next().expect("the number of its process");
        let machine = first_process(patroni.as_ref().expect("its machine runs")).expect("its first process");
        let mut kill = Command::new("nsenter");
        kill.args(["--pid", "--target", &machine.to_string(), "--", "sh", "-c"]);
        crate::fault::run(kill.arg(format!("kill -KILL {postmaster}")));
    }

    /// Starts a killed node again. It follows the other one.
    pub(crate) fn revive(&mut self, number: usize) {
        if self.nodes[number].patroni.is_none() {
            self.run(number);
        }
    }

    /// Waits until another node than `old` is the primary.
    pub(crate) fn wait_for_another_than(&self, old: usize) {
        self.wait(|cluster| cluster.is(1 - old, "/primary"));
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut patroni) = node.patroni.take() {
                end(&mut patroni);
            }
        }
        let _ = self.etcd.kill();
        let _ = self.etcd.wait();
    }
}

/// Kills all processes of a node and waits for their exit.
fn end(machine: &mut Child) {
    if let Some(id) = first_process(machine).and_then(Pid::from_raw) {
        let _ = kill_process(id, Signal::KILL); // it may have exited
    }
    let _ = machine.wait();
}

/// Returns the first process of a PID namespace.
fn first_process(machine: &Child) -> Option<i32> {
    let id = machine.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn log(place: &TempDir, name: &str) -> File {
    fs::OpenOptions::new().create(true).append(true).open(place.path().join(name)).unwrap()
}

/// Returns the settings of Patroni. `ttl`, after which a dead primary is detected, is the minimum of Patroni. A
/// returning primary is copied from the other node, which is fast here.
fn settings(node: &Node, etcd: SocketAddr, directory: &Path, synchronous: bool) -> String {
    let Node { name, server, watcher, .. } = node;
    let (programs, directory) = (programs().unwrap(), directory.display());
    format!(
        "scope: orgvault
name: {name}
restapi: {{listen: '{watcher}', connect_address: '{watcher}'}}
etcd3: {{hosts: ['{etcd}']}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    primary_start_timeout: 0
    synchronous_mode: {synchronous}
    postgresql:
      use_pg_rewind: false
      use_slots: true
      parameters: {{wal_log_hints: 'on', max_connections: 100, shared_buffers: 32MB, wal_keep_size: 128MB}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}, data-checksums]
postgresql:
  listen: '{server}'
  connect_address: '{server}'
  data_dir: '{directory}/data'
  basebackup: {{checkpoint: fast}}
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  bin_dir: '{}'
  pgpass: '{directory}/pgpass'
  pg_hba: ['local all all trust', 'host all all 127.0.0.0/8 trust', 'host replication all 127.0.0.0/8 trust', 'host all all 10.0.0.0/24 trust',
    'host replication all 10.0.0.0/24 trust']
  parameters: {{unix_socket_directories: '{directory}', password_encryption: scram-sha-256}}
  authentication:
    superuser: {{username: {USER}, password: unused}}
    replication: {{username: replicator, password: unused}}
    rewind: {{username: rewinder, password: unused}}
",
        programs.display()
    )
}
