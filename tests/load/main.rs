//! Measures the release binary over HTTP on both databases:
//!
//! ```text
//! cargo build --release --workspace --bins --examples
//! cargo run --release -p vault-tests --bin load
//! ```
//!
//! The program starts and stops everything that it needs. On a busy host rates are unreliable, but the processor time of
//! one request (`server µs`) remains useful.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a measurement fails by panicking")]

mod bench;
mod engine;
mod growth;
mod operations;
mod report;
mod storm;
mod timing;

use bench::Bench;
use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};
use report::{Costs, Row, note, print};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use vault_testkit::postgres::{self, Cluster};
use vault_tests::machine::Machine;
use vault_tests::options::SharedOptions;
use vault_tests::{Database, binary};

/// Measures processor time, rates and response times of the release binary.
///
/// Runs `orgvault` from the directory of this program on new vaults and sends requests over HTTP.
#[derive(Parser)]
#[command(name = "load", max_term_width = 110)]
struct Options {
    /// Seconds to measure each rate
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Number of connections (operations)
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    connections: usize,
    /// Number of listed and replaced credentials (operations); up to this number (growth)
    #[arg(long, default_value_t = 500, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    rows: usize,
    /// Maximum number of organizations that save (growth)
    #[arg(long, default_value_t = 256, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    organizations: usize,
    /// Rejected logins of each kind whose response times are compared (timing)
    #[arg(long, default_value_t = 300, value_parser = RangedU64ValueParser::<usize>::new().range(20..=3000))]
    samples: usize,
    /// Logins at different unknown addresses before that (timing)
    #[arg(long, default_value_t = 20_000)]
    strangers: usize,
    /// Subjects to measure
    #[arg(long, value_delimiter = ',', value_enum, default_value = "operations")]
    only: Vec<Subject>,
    /// Draw the curves of growth into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Compare the processor time of operations with another build of `orgvault`. Fails if an operation costs more than in
    /// the other build
    #[arg(long, value_name = "BINARY", conflicts_with_all = ["only", "plot", "json"], value_parser = file)]
    compare: Option<PathBuf>,
    /// Number of runs of each build, each on a new vault
    #[arg(long, default_value_t = 3, requires = "compare", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Percent by which an operation may cost more than in the other build
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, requires = "compare")]
    tolerance: f64,
    #[command(flatten)]
    shared: SharedOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// Saves, lists, replacements, deletes, activations and logins, and the ratio to a minimal service
    Operations,
    /// Response times of logins that are rejected for different reasons
    Timing,
    /// More logins than the server can hash, or many requests of another organization, with concurrent lists
    Storm,
    /// Rates by connections, credentials and organizations
    Growth,
}

fn file(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_file() { path.canonicalize().map_err(|_| "not readable") } else { Err("not an existing file") }
}

impl Options {
    /// Returns the duration of one measurement.
    fn length(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(other) = &options.compare {
        return compare(&options, other);
    }
    let machine = Machine::look(&options.shared.dir).expect("the kernel describes the host");
    note(&machine.line());
    let rows: Vec<Row> = options.shared.database.iter().flat_map(|database| measure(&options, *database)).collect();
    if let Some(path) = &options.plot {
        growth::draw(&rows, path);
    }
    if options.shared.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        print(&serde_json::json!({"machine": machine.json(), "rows": rows}).to_string());
    } else {
        print(&rows.iter().map(|row| format!("{row}\n")).collect::<String>());
    }
    ExitCode::SUCCESS
}

/// Measures the selected subjects on a new vault.
fn measure(options: &Options, database: Database) -> Vec<Row> {
    let cluster = (database == Database::Postgres).then(|| {
        let settings = vec!["shared_buffers=128MB".to_owned(), "max_wal_size=4GB".to_owned()];
        Cluster::start(postgres::Options { settings, ..postgres::Options::default() })
    });
    let bench = Bench::new(&options.shared.dir, cluster.as_ref());
    let measure = |subject: &Subject| match subject {
        Subject::Operations => operations::measure(options, &bench),
        Subject::Timing => timing::measure(options, &bench),
        Subject::Storm => storm::measure(options, &bench),
        Subject::Growth => growth::measure(options, &bench),
    };
    options.only.iter().flat_map(measure).collect()
}

/// Runs this program for each build in turn and compares the processor times.
fn compare(options: &Options, other: &Path) -> ExitCode {
    let builds = [other.to_owned(), binary::path()];
    let mut costs = Costs::default();
    for round in 0..options.rounds {
        // The first run of a round may find a cooler processor.
        for build in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let mut run = Command::new(std::env::current_exe().expect("a running program has a file"));
            run.env("ORGVAULT_BIN", &builds[build]).arg("--json").arg("--dir").arg(&options.shared.dir);
            run.arg(format!("--seconds={}", options.seconds)).arg(format!("--connections={}", options.connections));
            run.arg(format!("--rows={}", options.rows)).arg("--database");
            run.arg(options.shared.database.iter().map(|one| one.name()).collect::<Vec<_>>().join(","));
            let output = run.stderr(Stdio::inherit()).output().expect("this program runs");
            assert!(output.status.success(), "{} cannot be measured", builds[build].display());
            costs.add(build, &serde_json::from_slice(&output.stdout).expect("a JSON document"));
        }
    }
    let (table, worse) = costs.compare(options.tolerance);
    print(&table);
    if worse { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
