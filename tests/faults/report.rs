//! What came of a fault.

use crate::crew::Tally;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use vault_tests::Database;

/// What came of one fault on one database.
pub(crate) struct Report {
    /// Name of the fault.
    pub(crate) fault: &'static str,
    /// On what.
    pub(crate) database: Database,
    /// How often it happened.
    pub(crate) rounds: usize,
    /// What the clients were answered.
    pub(crate) tally: Tally,
    /// What was lost, undone, unreadable or answered wrongly, in words.
    pub(crate) losses: Vec<String>,
    /// Further figures: name and value.
    pub(crate) figures: Vec<(String, String)>,
    /// The log of answers and its hash.
    pub(crate) log: String,
}

impl Report {
    /// A report of a fault that did not happen, and why.
    pub(crate) fn skipped(fault: &'static str, database: Database, why: &str) -> Self {
        let figures = vec![("skipped".to_owned(), why.to_owned())];
        Self { fault, database, rounds: 0, tally: Tally::default(), losses: Vec::new(), figures, log: String::new() }
    }

    /// Whether nothing was lost.
    pub(crate) fn is_clean(&self) -> bool {
        self.losses.is_empty()
    }

    /// One more figure.
    pub(crate) fn figure(&mut self, name: &str, value: impl ToString) {
        self.figures.push((name.to_owned(), value.to_string()));
    }

    /// The slowest answer, which must not have taken longer than this.
    pub(crate) fn slowest_answer(&mut self, longest: Duration) {
        let slowest = self.tally.slowest;
        self.figure("slowest answer", format!("{:.1} s", slowest.as_secs_f64()));
        if slowest > longest {
            self.losses.push(format!("an answer took {slowest:?}"));
        }
    }

    /// Counts what was lost instead of judging it: credentials, each once, and apart from them sessions and codes, and in
    /// how many rounds. What is left of the losses is something else.
    pub(crate) fn count_lost(&mut self, when: &str) {
        let (lost, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.losses).into_iter().partition(|loss| {
            ["crew/", "a session that", "a code that", ": 404: "].iter().any(|kind| loss.contains(kind))
        });
        self.losses = left;
        let credential = |loss: &String| Some(loss.split("crew/").nth(1)?.split([':', '(']).next()?.to_owned());
        let credentials: BTreeSet<_> = lost.iter().filter_map(credential).collect();
        let logins = lost.iter().filter(|loss| loss.contains("a session that") || loss.contains("a code that")).count();
        let rounds: BTreeSet<_> = lost.iter().filter_map(|loss| loss.split(':').next()).collect();
        let figure =
            format!("of {} credentials, and {logins} logins or logouts, in {} rounds", credentials.len(), rounds.len());
        self.figure(&format!("acknowledged {when} and lost"), figure);
    }

    /// Median and worst of some times.
    pub(crate) fn times(&mut self, name: &str, mut times: Vec<Duration>) {
        times.sort();
        if let (Some(median), Some(worst)) = (times.get(times.len() / 2), times.last()) {
            let millis = |time: &Duration| time.as_secs_f64() * 1e3;
            self.figure(name, format!("median {:.0} ms, worst {:.0} ms", millis(median), millis(worst)));
        }
    }

    /// A few lines for people.
    pub(crate) fn text(&self) -> String {
        let Self { fault, database, rounds, tally, losses, figures, log } = self;
        let mut lines = vec![format!(
            "{fault}, {database:?}: {rounds} rounds, {} writes acknowledged, {} unsure, {} lost or wrong",
            tally.done,
            tally.unsure,
            losses.len()
        )];
        lines.extend(figures.iter().map(|(name, value)| format!("  {name}: {value}")));
        let statuses: Vec<String> = tally.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        lines.push(format!("  answers by status (0: none): {}", statuses.join(", ")));
        lines.push(format!("  log: {log}"));
        lines.extend(losses.iter().take(50).map(|loss| format!("  LOST OR WRONG: {loss}")));
        lines.join("\n")
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let Self { fault, database, rounds, tally, losses, figures, log } = self;
        let figures: serde_json::Map<String, Value> =
            figures.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        json!({
            "fault": fault, "database": format!("{database:?}"), "rounds": rounds, "acknowledged": tally.done,
            "unsure": tally.unsure, "refused": tally.refused, "lost": losses.len(), "losses": losses,
            "figures": figures, "log": log,
        })
    }
}

/// A table for a page of documentation.
pub(crate) fn table(reports: &[Report]) -> String {
    let mut lines = vec![
        "| Fault | Database | Rounds | Writes acknowledged | Unsure | Lost or wrong | |".to_owned(),
        "|---|---|---:|---:|---:|---:|---|".to_owned(),
    ];
    lines.extend(reports.iter().map(|report| {
        let figures: Vec<String> = report.figures.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let Report { fault, database, rounds, tally, losses, .. } = report;
        let (done, unsure, lost, figures) = (tally.done, tally.unsure, losses.len(), figures.join("; "));
        format!("| {fault} | {database:?} | {rounds} | {done} | {unsure} | {lost} | {figures} |")
    }));
    lines.join("\n")
}
