//! Two samples side by side.

use super::{Target, decimal, target_json, verdict};
use crate::compare::{auc, median, stray};
use serde_json::{Value, json};

/// The area under the curve that says that nothing can be told.
const INDISTINCT: std::ops::RangeInclusive<f64> = 0.45..=0.55;

/// How well one kind of answer can be told from another by its time.
pub(crate) struct Comparison {
    what: String,
    /// How many samples of each.
    samples: [usize; 2],
    /// In milliseconds.
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

    /// The titles of its cells.
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

    /// One line for whoever watches.
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
