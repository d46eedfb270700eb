//! Results as text and as JSON.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Write, stderr, stdout};

/// The name of the processor time of one request.
pub(crate) const COST: &str = "server µs";

/// A result: named values.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) values: Vec<(&'static str, f64)>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, values: Vec<(&'static str, f64)>) -> Self {
        let row = Self { name: name.into(), values };
        // A run takes minutes and may be interrupted.
        note(&row.to_string());
        row
    }

    pub(crate) fn json(&self) -> Value {
        json!({"name": self.name, "values": self.values.iter().copied().collect::<BTreeMap<_, _>>()})
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:<45}", self.name)?;
        for (name, value) in &self.values {
            let decimals = if value.abs() < 10.0 { 2 } else { usize::from(value.abs() < 100.0) };
            write!(formatter, "  {name} {value:.decimals$}")?;
        }
        Ok(())
    }
}

/// Reports progress on standard error.
pub(crate) fn note(text: &str) {
    // Standard error may be closed.
    let _ = writeln!(stderr(), "{text}");
}

/// Writes to standard output.
pub(crate) fn print(text: &str) {
    writeln!(stdout(), "{}", text.trim_end()).expect("standard output accepts the result");
}

/// Returns the median of `values`, or the upper one of two middle values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Processor times of each operation in two builds, one value for each run.
#[derive(Default)]
pub(crate) struct Costs(BTreeMap<String, [Vec<f64>; 2]>);

impl Costs {
    /// Adds a run of this program.
    pub(crate) fn add(&mut self, build: usize, document: &Value) {
        for row in document["rows"].as_array().expect("rows") {
            if let (Some(name), Some(cost)) = (row["name"].as_str(), row["values"][COST].as_f64()) {
                self.0.entry(name.to_owned()).or_default()[build].push(cost);
            }
        }
    }

    /// Returns the comparison as a table, and `true` if an operation costs over `tolerance` percent more than in the other
    /// build.
    pub(crate) fn compare(&self, tolerance: f64) -> (String, bool) {
        let mut table = format!("{:<45} {:>10} {:>10} {:>6}\n", "", "other µs", "this µs", "ratio");
        let mut any = false;
        for (name, [other, this]) in &self.0 {
            let (other, this) = (median(other), median(this));
            let within = this / other <= 1.0 + tolerance / 100.0; // false for NaN: only one build performed the operation
            any |= !within;
            let mark = if within { "" } else { "  WORSE" };
            table += &format!("{name:<45} {other:>10.0} {this:>10.0} {:>6.2}{mark}\n", this / other);
        }
        (table, any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_is_worse_beyond_the_tolerance() {
        let mut costs = Costs::default();
        for (build, values) in [[100.0, 90.0, 300.0], [104.0, 1.0, 900.0]].iter().enumerate() {
            for value in values {
                costs.add(build, &json!({"rows": [{"name": "save", "values": {COST: value}}]}));
            }
        }
        assert!(!costs.compare(5.0).1, "medians of 100 and 104");
        assert!(costs.compare(3.0).1);
        costs.add(1, &json!({"rows": [{"name": "list", "values": {COST: 1.0}}]}));
        assert!(costs.compare(5.0).1, "only one build lists");
    }
}
