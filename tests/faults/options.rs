//! Which faults are to happen.

use crate::fault::Fault;
use clap::{Parser, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use vault_tests::Database;

/// Has faults happen to the real binary under load, and looks whether anything acknowledged is lost.
///
/// Takes `orgvault` from the directory of this program, or what ORGVAULT_BIN names. Exit status 1 if anything was lost or
/// answered wrongly.
#[derive(Parser)]
#[command(name = "faults", max_term_width = 110)]
pub(crate) struct Options {
    /// The faults; all if none is named
    #[arg(value_enum)]
    faults: Vec<Fault>,
    /// On which database; a fault that belongs to one of them happens there only
    #[arg(long, value_enum, default_value = "both")]
    database: Databases,
    /// How often each happens; each has a number of its own otherwise
    #[arg(long)]
    pub(crate) rounds: Option<NonZeroUsize>,
    /// Moments and writes of one seed are the same each time, as far as the machine allows
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where vaults are made, in a directory that is removed at the end
    #[arg(long, default_value = "/var/tmp", value_name = "DIRECTORY", value_parser = directory)]
    pub(crate) dir: PathBuf,
    /// Where the logs of acknowledged writes are kept: another file system
    #[arg(long, default_value = "/dev/shm", value_name = "DIRECTORY", value_parser = directory)]
    pub(crate) log_dir: PathBuf,
    /// The binary of the build before, for rolling-upgrade
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) earlier: Option<PathBuf>,
    /// In power-cut, the service's syncs do nothing: to see that losses are noticed. Losses are expected then
    #[arg(long)]
    pub(crate) without_sync: bool,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Databases.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Databases {
    /// The embedded file
    Sqlite,
    /// PostgreSQL
    Postgres,
    /// One after the other
    Both,
}

impl Options {
    /// The faults.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        if self.faults.is_empty() { Fault::value_variants().to_vec() } else { self.faults.clone() }
    }

    /// The databases that `fault` happens on.
    pub(crate) fn databases(&self, fault: Fault) -> Vec<Database> {
        let asked = match self.database {
            Databases::Sqlite => vec![Database::Sqlite],
            Databases::Postgres => vec![Database::Postgres],
            Databases::Both => vec![Database::Sqlite, Database::Postgres],
        };
        asked.into_iter().filter(|database| fault.databases().contains(database)).collect()
    }

    /// How often a fault happens that usually happens `usual` times.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        self.rounds.map_or(usual, NonZeroUsize::get)
    }
}

fn directory(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("there is no such directory") }
}

fn file(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Ok(path) } else { Err("there is no such file") }
}
