//! The options of the program.

use crate::fault::{FAULTS, Fault};
use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use vault_tests::Database;
use vault_tests::options::{SharedOptions, directory};

/// Causes faults while clients write to the real binary, and checks that no acknowledged write is lost.
///
/// Runs `orgvault` from the directory of this program, or the program that ORGVAULT_BIN names. Exit status 1: a write was
/// lost, or a response was wrong.
#[derive(Parser)]
#[command(name = "faults", max_term_width = 110)]
pub(crate) struct Options {
    /// Faults to cause; all if none is named
    #[arg(value_parser = fault())]
    faults: Vec<&'static Fault>,
    /// Number of times to cause each fault; the default depends on the fault
    #[arg(long)]
    pub(crate) rounds: Option<NonZeroUsize>,
    /// Seed for the moments of faults and the writes; the same seed repeats them as far as the host allows
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Directory for the logs of acknowledged writes; use another file system than for the vaults
    #[arg(long, default_value = "/dev/shm", value_name = "DIRECTORY", value_parser = directory)]
    pub(crate) log_dir: PathBuf,
    /// Binary of the previous build, for rolling-upgrade
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) earlier: Option<PathBuf>,
    /// power-cut, postgres-power-cut: make the syncs of the service or of PostgreSQL do nothing, to check that losses
    /// are detected; the campaign must then report losses
    #[arg(long)]
    pub(crate) without_sync: bool,
    #[command(flatten)]
    pub(crate) shared: SharedOptions,
}

impl Options {
    /// Returns the requested faults, or all.
    pub(crate) fn faults(&self) -> Vec<&'static Fault> {
        if self.faults.is_empty() { FAULTS.iter().collect() } else { self.faults.clone() }
    }

    /// Returns the requested databases to which `fault` applies.
    pub(crate) fn databases(&self, fault: &Fault) -> Vec<Database> {
        self.shared.database.iter().copied().filter(|database| fault.databases.contains(database)).collect()
    }

    /// Returns the number of rounds of a fault whose default is `usual`.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        self.rounds.map_or(usual, NonZeroUsize::get)
    }
}

fn fault() -> impl clap::builder::TypedValueParser<Value = &'static Fault> {
    let names = FAULTS.iter().map(|fault| PossibleValue::new(fault.name).help(fault.about));
    PossibleValuesParser::new(names)
        .map(|name| FAULTS.iter().find(|fault| fault.name == name).expect("a possible value is a fault"))
}

fn file(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Ok(path) } else { Err("not an existing file") }
}
