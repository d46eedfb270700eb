//! A log of the outcomes of writes, on another file system than the vault.

use crate::ledger::Outcome;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The log of one campaign.
pub(crate) struct AckLog {
    path: PathBuf,
    file: Mutex<BufWriter<File>>,
    acknowledged: Counter,
}

/// Number of acknowledged writes so far.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Returns the number.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl AckLog {
    /// Creates the log.
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        let path = directory.join(format!("orgvault-faults-{}-{name}.log", std::process::id()));
        let file = Mutex::new(BufWriter::new(File::create(&path).unwrap()));
        Self { path, file, acknowledged: Counter::default() }
    }

    /// Records the outcome of a write.
    pub(crate) fn note(&self, what: &str, outcome: Outcome) {
        self.acknowledged.0.fetch_add(u64::from(outcome == Outcome::Done), Ordering::Relaxed);
        writeln!(self.file.lock().unwrap(), "{what} {outcome:?}").unwrap();
    }

    /// Returns the counter of acknowledged writes.
    pub(crate) fn counter(&self) -> Counter {
        self.acknowledged.clone()
    }

    /// Writes all records to disk.
    pub(crate) fn sync(&self) {
        let mut file = self.file.lock().unwrap();
        file.flush().unwrap();
        file.get_ref().sync_data().unwrap();
    }

    /// Returns the path of a file next to the log.
    pub(crate) fn with_extension(&self, what: &str) -> PathBuf {
        self.path.with_extension(what)
    }

    /// Returns the path and the SHA-256 of the log.
    pub(crate) fn seal(&self) -> String {
        self.sync();
        let output = Command::new("sha256sum").arg(&self.path).output();
        let sum = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        sum.unwrap_or_else(|_| self.path.display().to_string())
    }
}
