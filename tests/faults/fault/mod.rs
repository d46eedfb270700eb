//! The faults.

mod allocations;
mod clock;
mod descriptors;
mod disk;
mod failover;
mod kill;
mod lock;
mod memory;
mod network;
mod pair;
mod partial;
mod pooler;
mod power;
mod power_postgres;
mod replicas;
mod rot;
mod rotation;
mod sectors;
mod server;
mod spread;
mod starvation;
mod storm;
mod syscalls;
mod upgrade;

use crate::options::Options;
use crate::random::Random;
use crate::report::Report;
use clap::ValueEnum;
use vault_tests::Database;
use vault_tests::database::new_postgres;

pub(crate) use disk::run;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The service is killed
    Kill,
    /// The service is killed at each system call that writes
    KillAtSyscalls,
    /// Power is cut
    PowerCut,
    /// Power is cut under PostgreSQL
    PostgresPowerCut,
    /// Each sync to disk fails
    FailedSyncs,
    /// Sectors of the disk cannot be read or written
    BadSectors,
    /// Each write finds the disk full
    FullAtSyscalls,
    /// The disk is full for a while
    DiskFull,
    /// The disk becomes read-only
    ReadOnly,
    /// The process runs out of file descriptors
    Descriptors,
    /// Another program has locked the database
    Lock,
    /// A long read keeps the write-ahead log from being reused
    LongRead,
    /// Connections to PostgreSQL are terminated
    Connections,
    /// PostgreSQL is killed
    Database,
    /// A node of a Citus cluster is killed
    Nodes,
    /// The response to a COMMIT is lost
    LostCommits,
    /// The network to PostgreSQL forwards nothing
    NetworkHangs,
    /// The network to PostgreSQL is slow
    SlowNetwork,
    /// Packets between clients, replicas and PostgreSQL are lost and come twice
    LossyNetwork,
    /// One direction of a replica's network is cut, or all of its clients
    OneWayCut,
    /// The primary reaches etcd in one direction only, and the synchronous standby takes over
    EtcdCut,
    /// The primary of two PostgreSQL servers fails, and the synchronous standby takes over
    Failover,
    /// The same with an asynchronous standby, which may lose the last acknowledged writes
    AsynchronousFailover,
    /// Two concurrent faults of a vault on PostgreSQL
    Pairs,
    /// The connection pooler pgbouncer, between the service and PostgreSQL, is killed
    Pooler,
    /// PostgreSQL allows fewer connections than the replicas want
    FewConnections,
    /// The clocks of replicas are wrong
    Clocks,
    /// Far more logins arrive than can be hashed, with little memory
    LoginStorm,
    /// The service gets no more memory
    NoMemory,
    /// Each allocation of a request fails once
    FailedAllocations,
    /// Replicas are restarted one after the other
    RollingRestart,
    /// Servers of the previous build (--earlier) and of this build serve one database
    RollingUpgrade,
    /// Keys of the organization and the instance, and the root key, are replaced under saves
    Rotation,
    /// Bytes of the stored file change
    BitRot,
}

/// The options and the database of a fault.
pub(crate) struct Ground<'a> {
    pub(crate) options: &'a Options,
    pub(crate) database: Database,
}

impl Ground<'_> {
    /// Creates a new database on a server and returns its URL, or `None` for the embedded file.
    pub(crate) fn new_url(&self) -> Option<String> {
        (self.database == Database::Postgres).then(new_postgres)
    }

    /// Returns the random generator for the moments of faults.
    pub(crate) fn random(&self) -> Random {
        Random::of(self.options.seed, 0)
    }
}

impl Fault {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the databases that the fault applies to.
    pub(crate) fn databases(self) -> &'static [Database] {
        match self {
            Self::KillAtSyscalls
            | Self::FailedSyncs
            | Self::FullAtSyscalls
            | Self::DiskFull
            | Self::ReadOnly
            | Self::LongRead
            | Self::BadSectors
            | Self::PowerCut
            | Self::FailedAllocations
            | Self::BitRot => &[Database::Sqlite],
            Self::Connections
            | Self::Database
            | Self::Nodes
            | Self::PostgresPowerCut
            | Self::LostCommits
            | Self::NetworkHangs
            | Self::SlowNetwork
            | Self::LossyNetwork
            | Self::OneWayCut
            | Self::EtcdCut
            | Self::FewConnections
            | Self::Pairs
            | Self::Pooler
            | Self::Failover
            | Self::AsynchronousFailover
            | Self::Clocks
            | Self::RollingUpgrade
            | Self::RollingRestart => &[Database::Postgres],
            Self::Kill | Self::Rotation | Self::Descriptors | Self::Lock | Self::LoginStorm | Self::NoMemory => {
                &[Database::Sqlite, Database::Postgres]
            }
        }
    }

    /// Runs the campaign of the fault.
    pub(crate) fn happen(self, ground: &Ground<'_>) -> Report {
        match self {
            Self::Kill => kill::happen(ground),
            Self::KillAtSyscalls => syscalls::killed(ground),
            Self::PowerCut => power::cut(ground),
            Self::PostgresPowerCut => power_postgres::cut(ground),
            Self::FailedSyncs => syscalls::failed_syncs(ground),
            Self::FullAtSyscalls => syscalls::full(ground),
            Self::DiskFull => disk::full(ground),
            Self::ReadOnly => disk::read_only(ground),
            Self::Descriptors => descriptors::happen(ground),
            Self::Lock => lock::happen(ground),
            Self::LongRead => starvation::happen(ground),
            Self::BadSectors => sectors::bad(ground),
            Self::LoginStorm => storm::happen(ground),
            Self::Connections => server::connections(ground),
            Self::Database => server::killed(ground),
            Self::Nodes => spread::killed(ground),
            Self::LostCommits => network::lost_commits(ground),
            Self::NetworkHangs => network::hanging(ground),
            Self::SlowNetwork => network::slow(ground),
            Self::LossyNetwork => partial::lossy(ground),
            Self::OneWayCut => partial::one_way(ground),
            Self::EtcdCut => failover::etcd_cut(ground),
            Self::Failover => failover::synchronous(ground),
            Self::AsynchronousFailover => failover::asynchronous(ground),
            Self::Pairs => pair::happen(ground),
            Self::Pooler => pooler::restarted(ground),
            Self::FewConnections => replicas::few_connections(ground),
            Self::Clocks => clock::skewed(ground),
            Self::NoMemory => memory::happen(ground),
            Self::FailedAllocations => allocations::fail(ground),
            Self::RollingRestart => replicas::rolling(ground),
            Self::RollingUpgrade => upgrade::rolling(ground),
            Self::Rotation => rotation::happen(ground),
            Self::BitRot => rot::happen(ground),
        }
    }
}
