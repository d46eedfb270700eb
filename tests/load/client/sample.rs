//! What a load came to.

use crate::Result;
use crate::process::Work;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest latency that is told apart, in microseconds: two minutes.
const LONGEST: u64 = 120_000_000;

/// Counts and latencies of one load.
pub(crate) struct Sample {
    /// Latencies of good answers, in microseconds.
    latencies: Histogram<u64>,
    /// Those of answers that the server gave to turn a request away for now.
    turned_away: Histogram<u64>,
    /// Everything else that went wrong, by what it was.
    pub(crate) errors: BTreeMap<String, u64>,
    /// How long was measured.
    pub(crate) elapsed: Duration,
    /// What the machine did meanwhile.
    pub(crate) work: Work,
}

impl Sample {
    /// Nothing yet.
    pub(crate) fn empty() -> Result<Self> {
        Ok(Self {
            latencies: Histogram::new_with_bounds(1, LONGEST, 3)?,
            turned_away: Histogram::new_with_bounds(1, LONGEST, 3)?,
            errors: BTreeMap::new(),
            elapsed: Duration::ZERO,
            work: Work::default(),
        })
    }

    /// Counts a good answer.
    pub(super) fn good(&mut self, latency: Duration) {
        self.latencies.saturating_record(microseconds(latency));
    }

    /// Counts an answer that turned a request away for now.
    pub(super) fn turn_away(&mut self, latency: Duration) {
        self.turned_away.saturating_record(microseconds(latency));
    }

    /// Counts an error.
    pub(super) fn error(&mut self, what: String) {
        *self.errors.entry(what).or_default() += 1;
    }

    /// Adds what another round came to.
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

    /// Good answers.
    pub(crate) fn count(&self) -> u64 {
        self.latencies.len()
    }

    /// Answers that turned a request away for now.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.len()
    }

    /// Parts with the answers that turned a request away: a sample in which those are what was wished for.
    pub(crate) fn split_turned_away(&mut self) -> Result<Self> {
        let none = Self::empty()?.turned_away;
        let latencies = std::mem::replace(&mut self.turned_away, none);
        Ok(Self { latencies, elapsed: self.elapsed, work: self.work, ..Self::empty()? })
    }

    /// Good answers a second.
    pub(crate) fn rate(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.count() as f64 / self.elapsed.as_secs_f64() }
    }

    /// The processor time of the watched processes for one good answer, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        self.per_answer(self.work.server)
    }

    /// So much time for one good answer, in microseconds.
    pub(crate) fn per_answer(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / (self.count().max(1) as f64)
    }

    /// The latency that this share of the good answers kept, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        self.latencies.value_at_quantile(share) as f64 / 1000.0
    }

    /// The longest latency of a good answer, in milliseconds.
    pub(crate) fn longest(&self) -> f64 {
        self.latencies.max() as f64 / 1000.0
    }

    /// How many errors.
    pub(crate) fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

fn microseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(LONGEST).max(1)
}
