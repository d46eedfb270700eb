//! A comparison of two samples.

use super::{Target, decimal, target_json, verdict};
use crate::compare::{auc, median, stray};
use serde_json::{Value, json};

/// Range of the area under the curve in which the samples are indistinguishable.
const INDISTINCT: std::ops::RangeInclusive<f64> = 0.45..=0.55;

/// The extent to which two kinds of responses can be distinguished by their time.
pub(crate) struct Comparison {
    what: String,
    /// Number of values in each sample.
    samples: [usize; 2],
    /// Medians of the samples, in milliseconds.
    medians: [f64; 2],
    auc: f64,
    target: Target,
}

impl Comparison {
    /// Compares response times, in milliseconds.
    pub(crate) fn new(what: impl Into<String>, times: &[f64], others: &[f64]) -> Self {
        let auc = auc(times, others);
        Self {
            what: what.into(),
            samples: [times.len(), others.len()],
            medians: [median(times), median(others)],
            auc,
            target: Target::new("0.45 to 0.55", INDISTINCT.contains(&auc)),
        }
    }

    /// Returns the column titles.
    pub(super) fn titles() -> Vec<String> {
        ["", "samples", "median ms", "other's ms", "difference µs", "AUC", "by chance ±", "target"]
            .map(str::to_owned)
            .to_vec()
    }

    fn stray(&self) -> f64 {
        let [samples, others] = self.samples;
        stray(samples, others)
    }

    fn difference(&self) -> f64 {
        let [median, other] = self.medians;
        (median - other) * 1000.0
    }

    /// Formats the comparison as one line of progress output.
    pub(super) fn line(&self) -> String {
        format!("{}: {:+.0} µs, AUC {:.3}", self.what, self.difference(), self.auc)
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let ([samples, others], [median, other]) = (self.samples, self.medians);
        vec![
            self.what.clone(),
            format!("{samples}, {others}"),
            decimal(median),
            decimal(other),
            format!("{:+.0}", self.difference()),
            format!("{:.3}", self.auc),
            format!("{:.3}", self.stray()),
            verdict(&self.target),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "what": self.what, "samples": self.samples, "medians_ms": self.medians, "auc": self.auc,
            "by_chance": self.stray(), "target": target_json(&self.target),
        })
    }
}
