//! Measures the release binary on a real port with both databases, and prints each result with its upper bound,
//! measured in the same run, and its target:
//!
//! ```text
//! cargo build --release --workspace --bins --examples
//! cargo run --release -p vault-tests --bin load
//! ```
//!
//! With `--compare BINARY`, it measures another build in turn and fails if an operation costs more processor time than there.
//!
//! The program starts and stops everything that it needs. The column `others` shows the load of other programs on the
//! host: on a busy host, the rates are unreliable, but the processor time of one response (`server µs`) remains useful.

mod account;
mod client;
mod compare;
mod measure;
mod metrics;
mod options;
mod process;
mod reference;
mod regression;
mod report;
mod request;
mod shuffle;
mod vault;

use clap::Parser;
use measure::Ground;
use options::{Options, Subject};
use reference::References;
use regression::{Build, Costs};
use report::{Report, Target};
use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use vault::Vault;
use vault_testkit::postgres::{self, Cluster};
use vault_tests::Database;
use vault_tests::machine::Machine;

/// Errors are text because no caller handles them.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Measures one subject.
type Measurement = fn(&Ground<'_>, &mut Report) -> Result<()>;

/// Reports progress on standard error.
fn note(text: &str) {
    // Standard error may be closed.
    let _ = writeln!(stderr(), "{text}");
}

fn run(options: &Options) -> Result<()> {
    let program = std::env::current_exe()?;
    let target = program.parent().ok_or("the path of this program has no parent directory")?;
    let binary = target.join("orgvault");
    let missing = References::missing(target);
    if !binary.is_file() || !missing.is_empty() {
        let target = target.display();
        let build = "cargo build --release --workspace --bins --examples";
        return Err(format!("orgvault or a reference program is not built in {target}: run `{build}`").into());
    }
    let directory = tempfile::Builder::new().prefix("orgvault-load-").tempdir_in(&options.shared.dir)?;
    let machine = Machine::look(directory.path())?;
    note(&machine.line());
    if let Some(other) = &options.compare {
        return compare(options, [other, &binary], target, directory.path());
    }
    let mut reports = Vec::new();
    for (name, cluster) in databases(options) {
        reports.push(measure(options, &binary, target, &directory.path().join(name), cluster.as_ref())?);
    }
    if let Some(path) = &options.plot {
        report::draw(&reports, path)?;
    }
    let mut out = stdout().lock();
    if options.shared.json {
        let reports: Vec<_> = reports.iter().map(Report::json).collect();
        writeln!(out, "{:#}", serde_json::json!({"machine": machine.json(), "reports": reports}))?;
    } else {
        writeln!(out, "{}", machine.line())?;
        for report in &reports {
            writeln!(out, "\n{}", report.table())?;
        }
    }
    Ok(())
}

/// Starts the database servers that are needed. The embedded database has none.
fn databases(options: &Options) -> impl Iterator<Item = (&'static str, Option<Cluster>)> {
    [(Database::Sqlite, "sqlite"), (Database::Postgres, "postgres")]
        .into_iter()
        .filter(|(database, _)| options.shared.database.contains(database))
        .map(|(database, name)| {
            let settings = vec!["shared_buffers=128MB".to_owned(), "max_wal_size=4GB".to_owned()];
            let start = || {
                let workers = Cluster::wanted_workers();
                Cluster::start(postgres::Options { settings, workers, ..postgres::Options::default() })
            };
            (name, (database == Database::Postgres).then(start))
        })
}

/// Measures two builds in turn, each on a new vault in each round, and fails if an operation costs more in the second one.
fn compare(options: &Options, builds: [&Path; 2], target: &Path, directory: &Path) -> Result<()> {
    let round_options = options.of_one_round();
    let mut costs = Costs::default();
    for (name, cluster) in databases(options) {
        for round in 0..options.rounds {
            let mut order = [Build::Other, Build::This];
            // The first one in a round may find a cooler processor or a smaller database.
            order.rotate_left(usize::from(round % 2 == 1));
            for build in order {
                let directory = directory.join(format!("{name}-{round}-{}", build as usize));
                let report = measure(&round_options, builds[build as usize], target, &directory, cluster.as_ref())?;
                costs.add(build, &report);
                std::fs::remove_dir_all(&directory)?;
            }
        }
    }
    let (table, worse) = costs.compare(options.tolerance);
    writeln!(stdout().lock(), "{table}")?;
    if worse.is_empty() { Ok(()) } else { Err(format!("costs more than before: {}", worse.join("; ")).into()) }
}

/// Measures all subjects on one database.
fn measure(
    options: &Options,
    binary: &Path,
    target: &Path,
    directory: &Path,
    cluster: Option<&Cluster>,
) -> Result<Report> {
    std::fs::create_dir(directory)?;
    let name = if cluster.is_some() { "PostgreSQL" } else { "SQLite, encrypted file" };
    note(&format!("--- {name}"));
    let mut report = Report::new(name);
    let references = References::new(target, directory, cluster.map(Cluster::create_database).as_deref());
    let database = cluster.map(database).transpose()?;
    let vault = Vault::create(binary, directory, database)?;
    if let Err(error) = measure_all(options, &vault, &references, cluster, &mut report) {
        return Err(format!("{error}\nthe server's log ends:\n{}", vault.log()).into());
    }
    let size = std::fs::metadata(binary)?.len() as f64 / 1e6;
    report.quantity("size of the binary", size, "MB", Some(Target::new("≤ 40 MB", size <= 40.0)));
    Ok(report)
}

/// Creates a database, and returns its URL and the PID of its server.
fn database(cluster: &Cluster) -> Result<(String, u32)> {
    let url = cluster.create_database();
    let id = cluster.execute(&url, "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)");
    Ok((url, id.parse()?))
}

fn measure_all(
    options: &Options,
    vault: &Vault,
    references: &References,
    cluster: Option<&Cluster>,
    report: &mut Report,
) -> Result<()> {
    if options.has(Subject::Cold) {
        measure::cold_start(vault, "new vault", report)?;
    }
    let server = vault.serve()?;
    std::thread::sleep(Duration::from_millis(500));
    let idle = server.memory()?.resident as f64 / 1e6;
    report.quantity("memory before the first login", idle, "MB", Some(Target::new("≤ 32 MB", idle <= 32.0)));
    let ground = Ground { options, vault, server: &server, references, cluster };
    let subjects: [(Subject, &str, Measurement); 15] = [
        (Subject::Saves, "saves", measure::saves),
        (Subject::Lists, "lists", measure::lists),
        (Subject::Deletes, "deletes", measure::deletes),
        (Subject::Life, "replacements and labels", measure::life),
        (Subject::Activations, "activations", measure::activations),
        (Subject::Tenants, "many organizations", measure::tenants),
        (Subject::Fairness, "a flood of lists", measure::fairness),
        (Subject::Growth, "growth", measure::growth),
        (Subject::Rotation, "a key rotation", measure::rotation),
        (Subject::Receivers, "receivers", measure::receivers),
        (Subject::Commands, "commands", measure::commands),
        (Subject::Console, "the console", measure::console),
        (Subject::Logins, "logins", measure::logins),
        (Subject::Timing, "timing", measure::timing),
        (Subject::Storm, "storm", measure::storm),
    ];
    for (subject, name, measure) in subjects {
        if options.has(subject) {
            measure(&ground, report)?;
            report.quantity(format!("memory after {name}"), server.memory()?.resident as f64 / 1e6, "MB", None);
        }
    }
    let peak = server.memory()?.peak as f64 / 1e6;
    let permits = std::thread::available_parallelism()?.get() as f64;
    let most = 80.0 + permits * 19.0 * 1024.0 * 1024.0 / 1e6;
    let target = Target::new(format!("≤ 80 MB + {permits} × 19 MiB = {most:.0} MB"), peak <= most);
    report.quantity("memory at most", peak, "MB", Some(target));
    server.stop()?;
    report.quantity("data directory", vault.size()? as f64 / 1e6, "MB", None);
    if options.has(Subject::Cold) {
        measure::cold_start(vault, "filled vault", report)?;
    }
    Ok(())
}
