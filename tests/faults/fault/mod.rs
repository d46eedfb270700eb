//! The faults. Each one disturbs a vault while clients write. The rig owns the clients, the recovery time and the checks.

mod allocations;
mod citus;
mod disk;
mod failover;
mod host;
mod power;
mod proxy;
mod replicas;
mod server;
mod syscalls;

use crate::options::Options;
use crate::report::Report;
use simulated_disk::random::Random;
use std::process::Command;
use vault_tests::Database::{self, Postgres, Sqlite};
use vault_tests::database::new_postgres;

/// The report of a fault, or the reason why this host does not permit the fault.
pub(crate) type Outcome = Result<Report, String>;

pub(crate) struct Fault {
    /// The name on the command line.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) databases: &'static [Database],
    run: fn(&Ground<'_>) -> Outcome,
}

const FILE: &[Database] = &[Sqlite];
const SERVER: &[Database] = &[Postgres];
const BOTH: &[Database] = &[Sqlite, Postgres];

pub(crate) const FAULTS: &[Fault] = &[
    fault("kill", "The service is killed", BOTH, host::kill),
    fault("kill-at-syscalls", "The service is killed at each system call that writes", FILE, syscalls::killed),
    fault("power-cut", "Power is cut", FILE, power::file),
    fault("postgres-power-cut", "Power is cut under PostgreSQL", SERVER, power::postgres),
    fault("failed-syncs", "Each sync to disk fails", FILE, syscalls::failed_syncs),
    fault("bad-sectors", "Sectors of the disk cannot be read or written", FILE, disk::bad_sectors),
    fault("full-at-syscalls", "Each write finds the disk full", FILE, syscalls::full),
    fault("disk-full", "The disk is full for a while", FILE, disk::full),
    fault("read-only", "The disk becomes read-only", FILE, disk::read_only),
    fault("descriptors", "The process runs out of file descriptors", BOTH, host::descriptors),
    fault("lock", "Another program has locked the database", BOTH, host::lock),
    fault("long-read", "A long read keeps the write-ahead log from being reused", FILE, host::long_read),
    fault("connections", "Connections to PostgreSQL are terminated", SERVER, server::connections),
    fault("database", "PostgreSQL is killed", SERVER, server::killed),
    fault("nodes", "A node of a Citus cluster is killed", SERVER, citus::killed),
    fault("lost-commits", "The response to a COMMIT is lost", SERVER, proxy::lost_commits),
    fault("network-hangs", "The network to PostgreSQL forwards nothing", SERVER, proxy::hanging),
    fault("slow-network", "The network to PostgreSQL is slow", SERVER, proxy::slow),
    fault(
        "lossy-network",
        "Packets between clients, replicas and PostgreSQL are lost and come twice",
        SERVER,
        replicas::lossy_network,
    ),
    fault(
        "one-way-cut",
        "One direction of a replica's network is cut, or all of its clients",
        SERVER,
        replicas::one_way_cut,
    ),
    fault(
        "etcd-cut",
        "The primary reaches etcd in one direction only, and the synchronous standby takes over",
        SERVER,
        failover::etcd_cut,
    ),
    fault(
        "failover",
        "The primary of two PostgreSQL servers fails, and the synchronous standby takes over",
        SERVER,
        failover::synchronous,
    ),
    fault(
        "asynchronous-failover",
        "The same with an asynchronous standby, which may lose the last acknowledged writes",
        SERVER,
        failover::asynchronous,
    ),
    fault("pairs", "Two concurrent faults of a vault on PostgreSQL", SERVER, proxy::pairs),
    fault(
        "pooler",
        "The connection pooler pgbouncer, between the service and PostgreSQL, is killed",
        SERVER,
        server::pooler,
    ),
    fault(
        "few-connections",
        "PostgreSQL allows fewer connections than the replicas want",
        SERVER,
        replicas::few_connections,
    ),
    fault("clocks", "The clocks of replicas are wrong", SERVER, replicas::clocks),
    fault("login-storm", "Far more logins arrive than can be hashed, with little memory", BOTH, host::login_storm),
    fault("no-memory", "The service gets no more memory", BOTH, host::no_memory),
    fault("failed-allocations", "Each allocation of a request fails once", FILE, allocations::fail),
    fault("rolling-restart", "Replicas are restarted one after the other", SERVER, replicas::rolling_restart),
    fault(
        "rolling-upgrade",
        "Servers of the previous build (--earlier) and of this build serve one database",
        SERVER,
        replicas::rolling_upgrade,
    ),
    fault(
        "rotation",
        "Keys of the organization and the instance, and the root key, are replaced under saves",
        BOTH,
        replicas::rotation,
    ),
    fault("bit-rot", "Bytes of the stored file change", FILE, disk::bit_rot),
];

const fn fault(
    name: &'static str,
    about: &'static str,
    databases: &'static [Database],
    run: fn(&Ground<'_>) -> Outcome,
) -> Fault {
    Fault { name, about, databases, run }
}

/// The name, the options and the database of a fault.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) name: &'static str,
    pub(crate) options: &'a Options,
    pub(crate) database: Database,
}

impl Ground<'_> {
    /// Creates a new database on a server and returns its URL, or `None` for the embedded file.
    pub(crate) fn new_url(&self) -> Option<String> {
        (self.database == Postgres).then(new_postgres)
    }

    /// Returns the random generator for the moments of faults.
    pub(crate) fn random(&self) -> Random {
        Random::of(self.options.seed, 0)
    }
}

impl Fault {
    /// Runs the campaign of the fault on a database.
    pub(crate) fn happen(&self, options: &Options, database: Database) -> Report {
        let ground = Ground { name: self.name, options, database };
        (self.run)(&ground).unwrap_or_else(|why| Report::skipped(&ground, &why))
    }
}

/// Returns an error if there is a reason why a fault is impossible here.
fn possible(reason: Option<String>) -> Result<(), String> {
    reason.map_or(Ok(()), Err)
}

/// Runs a command that must succeed, and returns its standard output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
