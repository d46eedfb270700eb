//! The options of the program.

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use vault_tests::options::SharedOptions;

/// Measures rates, response times, memory and start-up time of the release binary.
///
/// Runs `orgvault` from the directory of this program on new vaults and sends requests over HTTP. Prints each result
/// next to its bound, measured in the same run, and its target.
#[derive(Clone, Parser)]
#[command(name = "load", max_term_width = 110)]
pub(crate) struct Options {
    /// Seconds to measure each rate, as the sum of all rounds
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// Number of rounds of each rate; its bounds and the rates that it is compared with are measured between the rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub(crate) rounds: u64,
    /// Sizes of the organizations to list (lists); up to the largest (growth)
    #[arg(long, value_delimiter = ',', default_value = "100,100000,1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Vec<u64>,
    /// Maximum number of organizations that save (growth); 10,000 take ten minutes to create, for each database
    #[arg(long, default_value_t = 256, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub(crate) organizations: usize,
    /// Credentials of the organization whose key is rotated (rotation)
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rotated: u64,
    /// Numbers of connections to measure with
    #[arg(long, value_delimiter = ',', default_value = "1,64,256", value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub(crate) connections: Vec<usize>,
    /// Rejected logins of each kind whose response times are compared (timing)
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(20..=3000))]
    pub(crate) samples: u64,
    /// Logins at different unknown addresses before that (timing)
    #[arg(long, default_value_t = 20_000)]
    pub(crate) strangers: u64,
    /// Subjects to measure
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "saves,lists,deletes,logins,timing,storm,commands,cold"
    )]
    pub(crate) only: Vec<Subject>,
    /// Draw the curves of growth into this SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Compare with another build of `orgvault`: measure both in turn, once in each round, and print the ratios of processor
    /// time. Fails if an operation costs more than in the other build
    #[arg(long, value_name = "BINARY", conflicts_with = "plot", value_parser = file)]
    pub(crate) compare: Option<PathBuf>,
    /// Percent by which an operation may cost more than in the other build
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, requires = "compare")]
    pub(crate) tolerance: f64,
    #[command(flatten)]
    pub(crate) shared: SharedOptions,
}

fn file(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { Ok(path) } else { Err("not an existing file") }
}

/// The subjects to measure.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Saving credentials
    Saves,
    /// Listing 100 credentials
    Lists,
    /// Deleting credentials
    Deletes,
    /// Replacing data, and listing by label
    Life,
    /// Activating namespaces and ending activations: by one integration, by many, by identity tokens, and during a
    /// flood of forged tokens
    Activations,
    /// Saving in many organizations concurrently, and during load of an organization whose saves are all rejected
    Tenants,
    /// Listing in one organization while another organization sends a flood of list requests
    Fairness,
    /// Saves and lists by connections, credentials and organizations
    Growth,
    /// Replacing the key of an organization
    Rotation,
    /// Replacements that are reported to a receiver
    Receivers,
    /// Logging in
    Logins,
    /// Comparing the response times of logins that are rejected for different reasons
    Timing,
    /// More logins than the server can hash, with lists at the same time
    Storm,
    /// Commands while a server is busy
    Commands,
    /// The console in Chromium: its first page, and pages with many rows
    Console,
    /// Starting the server
    Cold,
}

impl Options {
    /// Returns `true` if `subject` is selected.
    pub(crate) fn has(&self, subject: Subject) -> bool {
        self.only.contains(&subject)
    }

    /// Returns the length of one round.
    pub(crate) fn round(&self) -> Duration {
        Duration::from_secs(self.seconds).div_f64(self.rounds as f64)
    }

    /// Returns the options of a run of one round.
    pub(crate) fn of_one_round(&self) -> Self {
        Self { seconds: self.seconds.div_ceil(self.rounds), rounds: 1, ..self.clone() }
    }
}
