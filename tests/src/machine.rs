//! The environment of a measurement.

use serde_json::{Value, json};
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The host, the time and the commit of a measurement.
pub struct Machine {
    cores: usize,
    processor: String,
    memory: u64,
    kernel: String,
    /// Median duration of a 4 KiB write with fdatasync, in microseconds.
    sync: f64,
    load: String,
    date: String,
    commit: String,
}

impl Machine {
    /// Reads the environment and measures syncs in `directory`.
    ///
    /// # Errors
    /// The kernel does not provide the information, or `directory` is not writable.
    pub fn look(directory: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            processor: line("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            memory: line("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse().ok())
                .unwrap_or(0),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            sync: sync_time(directory)?,
            load: fs::read_to_string("/proc/loadavg")?.split(' ').next().unwrap_or_default().to_owned(),
            date: OffsetDateTime::now_utc().replace_nanosecond(0)?.format(&Rfc3339)?,
            commit: commit(),
        })
    }

    /// Formats the environment as text.
    pub fn line(&self) -> String {
        let Self { cores, processor, memory, kernel, sync, load, date, commit } = self;
        let memory = memory / (1024 * 1024);
        format!(
            "{date}, commit {commit}\n{cores} cores ({processor}), {memory} GiB, Linux {kernel}; \
             4 KiB write with fdatasync: {sync:.0} µs; load average at the start {load}"
        )
    }

    /// Returns the environment as JSON.
    pub fn json(&self) -> Value {
        json!({
            "cores": self.cores, "processor": self.processor, "memory_kib": self.memory, "kernel": self.kernel,
            "fdatasync_us": self.sync, "load_average": self.load, "date": self.date, "commit": self.commit,
        })
    }
}

fn line(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn sync_time(directory: &Path) -> Result<f64, Box<dyn Error>> {
    let path = directory.join(format!("sync-{}", std::process::id()));
    let mut file = File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..300 {
        let started = Instant::now();
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    fs::remove_file(path)?;
    times.sort();
    Ok(times[times.len() / 2].as_secs_f64() * 1e6)
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(id) if git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty()) => {
            format!("{id} with changes")
        }
        Some(id) => id,
        None => "unknown".to_owned(),
    }
}
