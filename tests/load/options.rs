//! What to measure.

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Measures the release binary: rates, latencies, memory, start-up.
///
/// Starts `orgvault` from the directory of this program on vaults of its own, drives it over HTTP and prints each
/// figure beside what bounds it, measured in the same run, and beside its target.
#[derive(Parser)]
#[command(name = "load", max_term_width = 110)]
pub(crate) struct Options {
    /// On which database
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) database: DatabaseChoice,
    /// For how long each rate is measured, in all its rounds
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// In how many rounds; between two rounds of one rate its references and its neighbours have theirs
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub(crate) rounds: u64,
    /// Sizes of the organizations that are listed
    #[arg(long, value_delimiter = ',', default_value = "100,100000,1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Vec<u64>,
    /// Credentials of the organization whose key is rotated
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rotated: u64,
    /// Connections at once
    #[arg(long, value_delimiter = ',', default_value = "1,64,256", value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub(crate) connections: Vec<usize>,
    /// Response times of refused logins that are taken of each kind
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(20..=3000))]
    pub(crate) samples: u64,
    /// Logins at unknown addresses, all different, before the response times are taken
    #[arg(long, default_value_t = 20_000)]
    pub(crate) strangers: u64,
    /// What to measure
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "saves,lists,deletes,logins,timing,storm,commands,cold"
    )]
    pub(crate) only: Vec<Subject>,
    /// Where the vaults are made, in a directory that is removed at the end; should lie on a disk, not in memory
    #[arg(long, default_value = "/var/tmp", value_name = "DIRECTORY")]
    pub(crate) dir: PathBuf,
    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Databases to measure on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DatabaseChoice {
    /// The embedded file
    Sqlite,
    /// A throwaway PostgreSQL server
    Postgres,
    /// One after the other
    Both,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Saving credentials
    Saves,
    /// Listing 100 credentials
    Lists,
    /// Deleting credentials
    Deletes,
    /// Replacing data, and lists of labels
    Life,
    /// Activating namespaces and ending activations, by one integration and by many
    Activations,
    /// Saving in many organizations at once, and beside one whose saves are all refused
    Tenants,
    /// Replacing the key of an organization
    Rotation,
    /// Logging in
    Logins,
    /// Whether the time of a refused login tells why it was refused
    Timing,
    /// More logins than can be hashed, and lists beside them
    Storm,
    /// Commands beside a busy server
    Commands,
    /// The console's first page, in Chromium
    Console,
    /// Starting
    Cold,
}

impl Options {
    /// Whether `subject` is to be measured.
    pub(crate) fn has(&self, subject: Subject) -> bool {
        self.only.contains(&subject)
    }

    /// The length of one round.
    pub(crate) fn round(&self) -> Duration {
        Duration::from_secs(self.seconds).div_f64(self.rounds as f64)
    }
}
