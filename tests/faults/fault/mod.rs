//! The faults.

mod clock;
mod descriptors;
mod disk;
mod failover;
mod kill;
mod lock;
mod memory;
mod network;
mod pooler;
mod power;
mod replicas;
mod rot;
mod sectors;
mod server;
mod starvation;
mod storm;
mod syscalls;
mod upgrade;

use crate::chance::Chance;
use crate::options::Options;
use crate::report::Report;
use clap::ValueEnum;
use vault_tests::Database;
use vault_tests::database::new_postgres;

pub(crate) use disk::run;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// R01: the service is killed
    Kill,
    /// R02: the service is killed at each system call that writes
    KillAtSyscalls,
    /// R03: the power is cut
    PowerCut,
    /// R04: each sync to disk fails
    FailedSyncs,
    /// R05: sectors of the disk cannot be read or written
    BadSectors,
    /// R06: each write finds the disk full
    FullAtSyscalls,
    /// R06: the disk fills up, and has space again
    DiskFull,
    /// R07: the disk becomes read-only
    ReadOnly,
    /// R08: no file descriptors are left
    Descriptors,
    /// R09: another program holds the database's lock
    Lock,
    /// R10: a read that does not end keeps the write-ahead log from starting over
    LongRead,
    /// R11: connections to PostgreSQL end
    Connections,
    /// R12: PostgreSQL is killed
    Database,
    /// R13: the answer to a COMMIT is lost
    LostCommits,
    /// R14: the network to PostgreSQL forwards nothing
    NetworkHangs,
    /// R15: the network to PostgreSQL is slow
    SlowNetwork,
    /// R16: the primary of two PostgreSQL servers dies, and the synchronous standby takes over
    Failover,
    /// R16: the same with an asynchronous standby, which may lose what was acknowledged last
    AsynchronousFailover,
    /// A pooler of connections, pgbouncer, between the service and PostgreSQL is killed
    Pooler,
    /// R17: PostgreSQL gives fewer connections than replicas want
    FewConnections,
    /// R19, R20: clocks of replicas are wrong
    Clocks,
    /// R25: many more logins than can be hashed, in little memory
    LoginStorm,
    /// R26: the service gets no more memory
    NoMemory,
    /// R28: replicas are restarted in turn
    RollingRestart,
    /// Servers of the build before (--earlier) and of this one serve one database
    RollingUpgrade,
    /// R30: bytes of the stored file change
    BitRot,
}

/// Where a fault happens.
pub(crate) struct Ground<'a> {
    pub(crate) options: &'a Options,
    pub(crate) database: Database,
}

impl Ground<'_> {
    /// A new database, if it is a server.
    pub(crate) fn new_url(&self) -> Option<String> {
        (self.database == Database::Postgres).then(new_postgres)
    }

    /// The chance that decides when faults happen.
    pub(crate) fn chance(&self) -> Chance {
        Chance::of(self.options.seed, 0)
    }
}

impl Fault {
    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Where it can happen.
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
            | Self::BitRot => &[Database::Sqlite],
            Self::Connections
            | Self::Database
            | Self::LostCommits
            | Self::NetworkHangs
            | Self::SlowNetwork
            | Self::FewConnections
            | Self::Pooler
            | Self::Failover
            | Self::AsynchronousFailover
            | Self::Clocks
            | Self::RollingUpgrade
            | Self::RollingRestart => &[Database::Postgres],
            Self::Kill | Self::Descriptors | Self::Lock | Self::LoginStorm | Self::NoMemory => {
                &[Database::Sqlite, Database::Postgres]
            }
        }
    }

    /// Has it happen.
    pub(crate) fn happen(self, ground: &Ground<'_>) -> Report {
        match self {
            Self::Kill => kill::happen(ground),
            Self::KillAtSyscalls => syscalls::killed(ground),
            Self::PowerCut => power::cut(ground),
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
            Self::LostCommits => network::lost_commits(ground),
            Self::NetworkHangs => network::hanging(ground),
            Self::SlowNetwork => network::slow(ground),
            Self::Failover => failover::synchronous(ground),
            Self::AsynchronousFailover => failover::asynchronous(ground),
            Self::Pooler => pooler::restarted(ground),
            Self::FewConnections => replicas::few_connections(ground),
            Self::Clocks => clock::skewed(ground),
            Self::NoMemory => memory::happen(ground),
            Self::RollingRestart => replicas::rolling(ground),
            Self::RollingUpgrade => upgrade::rolling(ground),
            Self::BitRot => rot::happen(ground),
        }
    }
}
