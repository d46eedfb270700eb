//! Compares two builds of the program by the processor time of each operation.

use crate::compare::median;
use crate::report::{Report, aligned, decimal};
use std::collections::BTreeMap;

/// An operation on a database.
type Operation = (&'static str, String, usize);

/// Processor times of each operation, in microseconds: one value for each round of a build.
#[derive(Default)]
pub(crate) struct Costs(BTreeMap<Operation, [Vec<f64>; 2]>);

/// A build of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// The one that is compared with.
    Other,
    /// The one that is checked.
    This,
}

impl Costs {
    /// Adds the rates of a report. Operations without a successful response have no cost.
    pub(crate) fn add(&mut self, build: Build, report: &Report) {
        for rate in report.rates.iter().filter(|rate| rate.sample.count() > 0) {
            self.record(build, (report.database, rate.what.clone(), rate.connections), rate.sample.cost());
        }
    }

    fn record(&mut self, build: Build, operation: Operation, cost: f64) {
        self.0.entry(operation).or_default()[build as usize].push(cost);
    }

    /// Returns the comparison as a table, and the operations that cost more than before by over `tolerance` percent or that
    /// only one build performed.
    pub(crate) fn compare(&self, tolerance: f64) -> (String, Vec<String>) {
        let mut table = vec![["", "conn.", "other µs", "this µs", "ratio", ""].map(str::to_owned).to_vec()];
        let mut worse = Vec::new();
        for ((database, what, connections), [other, this]) in &self.0 {
            let (other, this) = (median(other), median(this));
            let ratio = this / other;
            let within = ratio <= 1.0 + tolerance / 100.0; // false for NaN: an operation without a value is not compared
            if !within {
                worse.push(format!("{what}, {database}, {connections} connections"));
            }
            table.push(vec![
                format!("{what}, {database}"),
                connections.to_string(),
                decimal(other),
                decimal(this),
                format!("{ratio:.2}"),
                if within { String::new() } else { "WORSE".to_owned() },
            ]);
        }
        (aligned(&table, &[0, 5]), worse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(values: &[(Build, f64)]) -> Costs {
        let mut costs = Costs::default();
        for (build, cost) in values {
            costs.record(*build, ("SQLite", "save".to_owned(), 64), *cost);
        }
        costs
    }

    #[test]
    fn operation_is_worse_beyond_the_tolerance() {
        use Build::{Other, This};
        let equal = [(Other, 100.0), (Other, 90.0), (Other, 300.0), (This, 104.0), (This, 1.0), (This, 900.0)];
        assert_eq!(costs(&equal).compare(5.0).1, Vec::<String>::new(), "medians of 100 and 104");
        assert_eq!(costs(&equal).compare(3.0).1, ["save, SQLite, 64 connections"]);
        assert_eq!(costs(&[(Other, 100.0), (This, 50.0)]).compare(5.0).1, Vec::<String>::new());
    }

    #[test]
    fn operation_of_one_build_is_reported() {
        for build in [Build::Other, Build::This] {
            assert_eq!(costs(&[(build, 100.0)]).compare(5.0).1.len(), 1);
        }
    }
}
