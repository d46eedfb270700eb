//! The results of a load.

use crate::Result;
use crate::process::Work;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum recorded latency in microseconds: two minutes.
const LONGEST: u64 = 120_000_000;

/// Counts and latencies of one load.
pub(crate) struct Sample {
    /// Latencies of successful responses, in microseconds.
    latencies: Histogram<u64>,
    /// Latencies of responses that reject a request for now.
    turned_away: Histogram<u64>,
    /// Counts of errors by description.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Length of the measurement.
    pub(crate) elapsed: Duration,
    /// Processor time during the measurement.
    pub(crate) work: Work,
}

impl Sample {
    /// Creates an empty sample.
    pub(crate) fn empty() -> Result<Self> {
        Ok(Self {
            latencies: Histogram::new_with_bounds(1, LONGEST, 3)?,
            turned_away: Histogram::new_with_bounds(1, LONGEST, 3)?,
            errors: BTreeMap::new(),
            elapsed: Duration::ZERO,
            work: Work::default(),
        })
    }

    /// Records a successful response.
    pub(super) fn good(&mut self, latency: Duration) {
        self.latencies.saturating_record(microseconds(latency));
    }

    /// Records a response that rejects a request for now.
    pub(super) fn turn_away(&mut self, latency: Duration) {
        self.turned_away.saturating_record(microseconds(latency));
    }

    /// Counts an error.
    pub(super) fn error(&mut self, what: String) {
        *self.errors.entry(what).or_default() += 1;
    }

    /// Adds the results of another round.
    pub(crate) fn add(&mut self, other: Self) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.turned_away.add(&other.turned_away)?;
        for (what, count) in other.errors {
            *self.errors.entry(what).or_default() += count;
        }
        self.elapsed += other.elapsed;
        self.work.add(&other.work);
        Ok(())
    }

    /// Returns the number of successful responses.
    pub(crate) fn count(&self) -> u64 {
        self.latencies.len()
    }

    /// Returns the number of responses that reject a request for now.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.len()
    }

    /// Splits off the responses that reject a request for now, as a sample in which they count as successful.
    pub(crate) fn split_turned_away(&mut self) -> Result<Self> {
        let none = Self::empty()?.turned_away;
        let latencies = std::mem::replace(&mut self.turned_away, none);
        Ok(Self { latencies, elapsed: self.elapsed, work: self.work, ..Self::empty()? })
    }

    /// Good answers a second.
    pub(crate) fn rate(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.count() as f64 / self.elapsed.as_secs_f64() }
    }

    /// Returns the processor time of the watched processes for each successful response, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        self.per_answer(self.work.server)
    }

    /// Returns the given time divided by the number of successful responses, in microseconds.
    pub(crate) fn per_answer(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / (self.count().max(1) as f64)
    }

    /// Returns the latency quantile of successful responses at `share`, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        self.latencies.value_at_quantile(share) as f64 / 1000.0
    }

    /// Returns the maximum latency of a successful response, in milliseconds.
    pub(crate) fn longest(&self) -> f64 {
        self.latencies.max() as f64 / 1000.0
    }

    /// Returns the number of errors.
    pub(crate) fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

fn microseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(LONGEST).max(1)
}
