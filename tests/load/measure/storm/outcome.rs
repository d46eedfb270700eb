//! Results of storms.

use super::reading;
use super::{PAUSES, Storm, pace};
use crate::Result;
use crate::client::Sample;
use crate::measure::mean;
use crate::report::{Bound, Rate, Report, Target};
use std::collections::BTreeMap;

/// Target of the 99th percentile of lists during a storm, and of rejected logins, in milliseconds.
const IMMEDIATE: f64 = 10.0;
/// Target share of the rate of the hash without other load.
const SERVED: f64 = 0.95;

/// The latencies that lists during a storm are compared with.
pub(super) struct Bounds {
    rate: f64,
    /// Median in milliseconds.
    median: f64,
}

impl Bounds {
    /// Computes the bounds from lists without other load.
    pub(super) fn of(idle: &Sample) -> Self {
        Self { rate: idle.rate(), median: idle.quantile(0.5) }
    }
}

/// The rounds of one storm.
pub(super) struct Outcome {
    logins: Sample,
    lists: Sample,
    /// Number of logins by the status of their response.
    statuses: BTreeMap<u16, u64>,
    /// Number of passwords that were compared with a hash.
    evaluated: u64,
    /// Results of the hash without other load: rates, and the processor time of one hash in microseconds.
    hashes: (Vec<f64>, Vec<f64>),
}

impl Outcome {
    /// Creates an outcome without rounds.
    pub(super) fn new() -> Result<Self> {
        let (logins, lists) = (Sample::empty()?, Sample::empty()?);
        Ok(Self { logins, lists, statuses: BTreeMap::new(), evaluated: 0, hashes: (Vec::new(), Vec::new()) })
    }

    /// Adds a round of the hash without other load: its rate, and the processor time of one hash.
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

    /// Returns the share of logins with status 200 or 401 that were hashed. The others were locked out.
    fn share_hashed(&self) -> f64 {
        let answered: u64 = [200, 401].iter().filter_map(|status| self.statuses.get(status)).sum();
        if answered == 0 { 0.0 } else { (self.evaluated as f64 / answered as f64).min(1.0) }
    }

    /// Adds three rows to the report: served logins, rejected logins, and concurrent lists.
    pub(super) fn report(mut self, storm: &Storm, idle: &Bounds, report: &mut Report) -> Result<()> {
        let hashes = mean(&self.hashes.0)?;
        let argon2id = Bound { cost: Some(mean(&self.hashes.1)?), ..Bound::new("argon2id", hashes) };
        let share = self.share_hashed();
        let turned_away = self.logins.split_turned_away()?;
        let Storm { connections, waits, pause } = *storm;
        let served = self.logins.rate() * share;
        // No target without a pause: the lists then use all processor time, and hashing has the lowest priority.
        let target = (!PAUSES[pause].is_zero())
            .then(|| Target::new(format!("≥ {SERVED} of argon2id"), served >= SERVED * hashes));
        let manner = if waits { "waiting as requested" } else { "without pause" };
        let partly = if share < 1.0 { format!(", {:.1} % of it hashed", share * 100.0) } else { String::new() };
        let what = format!("storm, {manner}: served{partly}");
        report.rate(Rate { what, connections, sample: self.logins, references: vec![argon2id], target });

        let counted = |status: &u16| format!("{} of {status}", self.statuses.get(status).copied().unwrap_or(0));
        let what = format!("storm, {manner}: turned away, {}, {}", counted(&503), counted(&429));
        let target = Target::new(format!("p99 ≤ {IMMEDIATE} ms"), turned_away.quantile(0.99) <= IMMEDIATE);
        report.rate(Rate { what, connections, sample: turned_away, references: Vec::new(), target: Some(target) });

        let (median, longest) = (self.lists.quantile(0.5), self.lists.quantile(0.99));
        let text = format!("p50 ≤ 2 × {:.2} ms, p99 ≤ {IMMEDIATE} ms", idle.median);
        let target = Target::new(text, median <= 2.0 * idle.median && longest <= IMMEDIATE);
        report.rate(Rate {
            what: format!("list 100 {} during storm of {connections}, {manner}", pace(PAUSES[pause])),
            connections: reading::CONNECTIONS,
            sample: self.lists,
            references: vec![Bound::new("alone", idle.rate)],
            target: Some(target),
        });
        Ok(())
    }
}
