//! The results of faults.

use crate::fault::Ground;
use crate::workers::Tally;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use vault_tests::Database;

/// The results of one fault on one database.
pub(crate) struct Report {
    /// Name of the fault.
    pub(crate) fault: &'static str,
    pub(crate) database: Database,
    /// Number of rounds.
    pub(crate) rounds: usize,
    /// Counts of the responses to clients.
    pub(crate) tally: Tally,
    /// Descriptions of data that was lost, undone or unreadable, and of wrong responses.
    pub(crate) losses: Vec<String>,
    /// Further results, as name and value.
    pub(crate) figures: Vec<(String, String)>,
    /// Path and hash of the log of responses.
    pub(crate) log: String,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new(ground: &Ground<'_>) -> Self {
        Self {
            fault: ground.name,
            database: ground.database,
            rounds: 0,
            tally: Tally::default(),
            losses: Vec::new(),
            figures: Vec::new(),
            log: String::new(),
        }
    }

    /// Creates the report of a fault that was skipped.
    pub(crate) fn skipped(ground: &Ground<'_>, why: &str) -> Self {
        Self { figures: vec![("skipped".to_owned(), why.to_owned())], ..Self::new(ground) }
    }

    /// Returns `true` if nothing was lost or wrong.
    pub(crate) fn is_clean(&self) -> bool {
        self.losses.is_empty()
    }

    /// Adds a result.
    pub(crate) fn figure(&mut self, name: &str, value: impl ToString) {
        self.figures.push((name.to_owned(), value.to_string()));
    }

    /// Adds the time of the slowest response, and a loss if it is longer than `longest`.
    pub(crate) fn slowest_answer(&mut self, longest: Duration) {
        let slowest = self.tally.slowest;
        self.figure("slowest answer", format!("{:.1} s", slowest.as_secs_f64()));
        if slowest > longest {
            self.losses.push(format!("an answer took {slowest:?}"));
        }
    }

    /// Replaces losses by counts: credentials, each counted once, sessions and codes, and the affected rounds. Other
    /// losses remain.
    pub(crate) fn count_lost(&mut self, when: &str) {
        let (lost, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.losses).into_iter().partition(|loss| {
            ["worker/", "a session that", "a code that", ": 404: "].iter().any(|kind| loss.contains(kind))
        });
        self.losses = left;
        let credential = |loss: &String| Some(loss.split("worker/").nth(1)?.split([':', '(']).next()?.to_owned());
        let credentials: BTreeSet<_> = lost.iter().filter_map(credential).collect();
        let logins = lost.iter().filter(|loss| loss.contains("a session that") || loss.contains("a code that")).count();
        let rounds: BTreeSet<_> = lost.iter().filter_map(|loss| loss.split(':').next()).collect();
        let figure =
            format!("of {} credentials, and {logins} logins or logouts, in {} rounds", credentials.len(), rounds.len());
        self.figure(&format!("acknowledged {when} and lost"), figure);
    }

    /// Adds the median and the maximum of some times.
    pub(crate) fn times(&mut self, name: &str, mut times: Vec<Duration>) {
        times.sort();
        if let (Some(median), Some(worst)) = (times.get(times.len() / 2), times.last()) {
            let millis = |time: &Duration| time.as_secs_f64() * 1e3;
            self.figure(name, format!("median {:.0} ms, worst {:.0} ms", millis(median), millis(worst)));
        }
    }

    /// Formats the report as text.
    pub(crate) fn text(&self) -> String {
        let Self { fault, database, rounds, tally, losses, figures, log } = self;
        let mut lines = vec![format!(
            "{fault}, {database:?}: {rounds} rounds, {} writes acknowledged, {} indeterminate, {} lost or wrong",
            tally.done,
            tally.indeterminate,
            losses.len()
        )];
        lines.extend(figures.iter().map(|(name, value)| format!("  {name}: {value}")));
        let statuses: Vec<String> = tally.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        lines.push(format!("  answers by status (0: none): {}", statuses.join(", ")));
        lines.push(format!("  log: {log}"));
        lines.extend(losses.iter().take(50).map(|loss| format!("  LOST OR WRONG: {loss}")));
        lines.join("\n")
    }

    /// Formats the report as JSON.
    pub(crate) fn json(&self) -> Value {
        let Self { fault, database, rounds, tally, losses, figures, log } = self;
        let figures: serde_json::Map<String, Value> =
            figures.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        json!({
            "fault": fault, "database": format!("{database:?}"), "rounds": rounds, "acknowledged": tally.done,
            "unsure": tally.indeterminate, "refused": tally.refused, "lost": losses.len(), "losses": losses,
            "figures": figures, "log": log,
        })
    }
}

/// Formats reports as a table for the documentation.
pub(crate) fn table(reports: &[Report]) -> String {
    let mut lines = vec![
        "| Fault | Database | Rounds | Writes acknowledged | Unsure | Lost or wrong | |".to_owned(),
        "|---|---|---:|---:|---:|---:|---|".to_owned(),
    ];
    lines.extend(reports.iter().map(|report| {
        let figures: Vec<String> = report.figures.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let Report { fault, database, rounds, tally, losses, .. } = report;
        let (done, indeterminate, lost, figures) = (tally.done, tally.indeterminate, losses.len(), figures.join("; "));
        format!("| {fault} | {database:?} | {rounds} | {done} | {indeterminate} | {lost} | {figures} |")
    }));
    lines.join("\n")
}
