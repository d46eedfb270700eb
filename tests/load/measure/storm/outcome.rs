//! What storms came to.

use super::reading;
use super::{PAUSES, Storm, pace};
use crate::Result;
use crate::client::Sample;
use crate::measure::mean;
use crate::report::{Bound, Rate, Report, Target};
use std::collections::BTreeMap;

/// How long 99 of 100 lists may take beside a storm, and 99 of 100 logins to be turned away, in milliseconds.
const AT_ONCE: f64 = 10.0;
/// The share of the rate of the hash alone that is to be served.
const SERVED: f64 = 0.95;

/// What lists beside a storm are held against.
pub(super) struct Bounds {
    rate: f64,
    /// In milliseconds.
    median: f64,
}

impl Bounds {
    /// Those that lists alone set.
    pub(super) fn of(idle: &Sample) -> Self {
        Self { rate: idle.rate(), median: idle.quantile(0.5) }
    }
}

/// The rounds of one storm.
pub(super) struct Outcome {
    logins: Sample,
    lists: Sample,
    /// How many logins were answered with which status.
    statuses: BTreeMap<u16, u64>,
    /// Passwords that were compared with a hash.
    evaluated: u64,
    /// Of the hash alone: rates, and the processor times of one in microseconds.
    hashes: (Vec<f64>, Vec<f64>),
}

impl Outcome {
    /// No round yet.
    pub(super) fn new() -> Result<Self> {
        let (logins, lists) = (Sample::empty()?, Sample::empty()?);
        Ok(Self { logins, lists, statuses: BTreeMap::new(), evaluated: 0, hashes: (Vec::new(), Vec::new()) })
    }

    /// Adds a round of the hash alone: its rate, and the processor time of one.
    pub(super) fn add_reference(&mut self, (rate, cost): (f64, f64)) {
        self.hashes.0.push(rate);
        self.hashes.1.push(cost);
    }

    /// Adds a round.
    pub(super) fn add(
        &mut self,
        logins: Sample,
        lists: Sample,
        statuses: BTreeMap<u16, u64>,
        evaluated: u64,
    ) -> Result<()> {
        self.logins.add(logins)?;
        self.lists.add(lists)?;
        for (status, count) in statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.evaluated += evaluated;
        Ok(())
    }

    /// The share of the logins answered with 200 or 401 that were hashed. The others met a wait.
    fn share_hashed(&self) -> f64 {
        let answered: u64 = [200, 401].iter().filter_map(|status| self.statuses.get(status)).sum();
        if answered == 0 { 0.0 } else { (self.evaluated as f64 / answered as f64).min(1.0) }
    }

    /// Three rows: what was served, what was turned away, the lists beside it.
    pub(super) fn report(mut self, storm: &Storm, idle: &Bounds, report: &mut Report) -> Result<()> {
        let hashes = mean(&self.hashes.0)?;
        let argon2id = Bound { cost: Some(mean(&self.hashes.1)?), ..Bound::new("argon2id", hashes) };
        let share = self.share_hashed();
        let turned_away = self.logins.split_turned_away()?;
        let Storm { connections, waits, pause } = *storm;
        let served = self.logins.rate() * share;
        // Lists without pause take what they can get, and hashing is the least urgent work.
        let target = (!PAUSES[pause].is_zero())
            .then(|| Target::new(format!("≥ {SERVED} of argon2id"), served >= SERVED * hashes));
        let manner = if waits { "waiting as told" } else { "without pause" };
        let partly = if share < 1.0 { format!(", {:.1} % of it hashed", share * 100.0) } else { String::new() };
        let what = format!("storm, {manner}: served{partly}");
        report.rate(Rate { what, connections, sample: self.logins, references: vec![argon2id], target });

        let counted = |status: &u16| format!("{} of {status}", self.statuses.get(status).copied().unwrap_or(0));
        let what = format!("storm, {manner}: turned away, {}, {}", counted(&503), counted(&429));
        let target = Target::new(format!("p99 ≤ {AT_ONCE} ms"), turned_away.quantile(0.99) <= AT_ONCE);
        report.rate(Rate { what, connections, sample: turned_away, references: Vec::new(), target: Some(target) });

        let (median, longest) = (self.lists.quantile(0.5), self.lists.quantile(0.99));
        let text = format!("p50 ≤ 2 × {:.2} ms, p99 ≤ {AT_ONCE} ms", idle.median);
        let target = Target::new(text, median <= 2.0 * idle.median && longest <= AT_ONCE);
        report.rate(Rate {
            what: format!("list 100 {} beside storm of {connections}, {manner}", pace(PAUSES[pause])),
            connections: reading::CONNECTIONS,
            sample: self.lists,
            references: vec![Bound::new("alone", idle.rate)],
            target: Some(target),
        });
        Ok(())
    }
}
