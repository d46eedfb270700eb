//! Upper bounds of the measured rates: the rows of the vault alone and behind a minimal service, and the hash alone.
//! Each is an example program that runs between the rounds of the rate that it bounds.

use crate::Result;
use crate::client::{Plan, Sample, Workload, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names of the programs.
const PROGRAMS: [&str; 2] = ["bare_vault", "bare_argon2"];

/// The reference programs with their database.
pub(crate) struct References {
    programs: PathBuf,
    /// The option for the database of `bare_vault`.
    database: String,
}

impl References {
    /// Uses the programs under `target`. They work on a file in `directory`, or on the PostgreSQL database at this URL.
    pub(crate) fn new(target: &Path, directory: &Path, postgres: Option<&str>) -> Self {
        let database = match postgres {
            Some(url) => option("postgres", url),
            None => option("file", directory.join("bare.db").display()),
        };
        Self { programs: target.join("examples"), database }
    }

    /// Returns the programs that have not been built.
    pub(crate) fn missing(target: &Path) -> Vec<PathBuf> {
        PROGRAMS.map(|name| target.join("examples").join(name)).into_iter().filter(|path| !path.is_file()).collect()
    }

    fn figures(&self, program: &str, arguments: &[String]) -> Result<Value> {
        let output = Command::new(self.programs.join(program)).args(arguments).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program} {}: {}", arguments.join(" "), message.trim()).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn store(&self, command: &str, arguments: &[String]) -> Result<f64> {
        let figures =
            self.figures("bare_vault", &[&[command.to_owned(), self.database.clone()], arguments].concat())?;
        figure(&figures, "rate")
    }

    /// Returns the rate at which a loop commits rows for `callers` in parallel: a credential and its audit record each.
    pub(crate) fn save_rate(&self, callers: usize, length: Duration) -> Result<f64> {
        self.store("save", &[option("callers", callers), option("seconds", length.as_secs_f64())])
    }

    /// Fills the store with this number of rows.
    pub(crate) fn fill(&self, rows: u64) -> Result<f64> {
        self.store("fill", &[option("rows", rows)])
    }

    /// Returns the rate at which a loop reads ranges of 100 rows for `callers` in parallel.
    pub(crate) fn list_rate(&self, callers: usize, length: Duration) -> Result<f64> {
        self.store("list", &[option("callers", callers), option("seconds", length.as_secs_f64())])
    }

    /// Returns the rate at which a loop commits replacements for `callers` in parallel, on a file.
    pub(crate) fn replacement_rate(&self, callers: usize, length: Duration) -> Result<f64> {
        self.store("replace", &[option("callers", callers), option("seconds", length.as_secs_f64())])
    }

    /// Returns the rate at which a loop commits deletions for `callers` in parallel, in random order among `rows`, on a
    /// file.
    pub(crate) fn delete_rate(&self, callers: usize, rows: usize, length: Duration) -> Result<f64> {
        let arguments = [option("callers", callers), option("rows", rows), option("seconds", length.as_secs_f64())];
        self.store("delete", &arguments)
    }

    /// Returns the rate of password hashes with this number of threads, and the processor time of one hash in
    /// microseconds.
    pub(crate) fn hashes(&self, threads: usize, length: Duration) -> Result<(f64, f64)> {
        let arguments = [option("threads", threads), option("seconds", length.as_secs_f64())];
        let figures = self.figures("bare_argon2", &arguments)?;
        Ok((figure(&figures, "rate")?, figure(&figures, "cost_us")?))
    }

    /// Starts the bare service. The processor time of `database`, the processes of PostgreSQL, is added to that of the
    /// service.
    pub(crate) fn service(&self, database: &[u32]) -> Result<BareService> {
        let mut command = Command::new(self.programs.join("bare_vault"));
        let mut child = command.arg("serve").arg(&self.database).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let watched = [&[child.id()], database].concat();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut service = BareService { child, watched, address, token: String::new() };
        let mut line = String::new();
        BufReader::new(stdout.ok_or("no standard output")?).read_line(&mut line)?;
        let (address, token) = line.trim().split_once(' ').ok_or("a bare service that said nothing")?;
        (service.address, service.token) = (address.parse()?, token.to_owned());
        Ok(service)
    }
}

fn figure(figures: &Value, name: &str) -> Result<f64> {
    figures.get(name).and_then(Value::as_f64).ok_or_else(|| format!("a reference printed no {name}").into())
}

fn option(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

/// A minimal service that saves and lists.
pub(crate) struct BareService {
    child: Child,
    watched: Vec<u32>,
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The token that it accepts.
    pub(crate) token: String,
}

impl BareService {
    /// Runs `workload`, which was created for its address and token, with the plan of the measurement that it bounds.
    pub(crate) fn measure(&self, plan: &Plan, workload: &mut impl Workload) -> Result<Sample> {
        run(&Plan { address: self.address, watched: self.watched.clone(), ..plan.clone() }, workload)
    }
}

impl Drop for BareService {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
