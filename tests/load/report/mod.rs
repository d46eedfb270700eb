//! Results with their references and targets, as text and as JSON.

mod comparison;
mod plot;

pub(crate) use comparison::Comparison;
pub(crate) use plot::{Axis, Point, draw};

use crate::client::Sample;
use crate::note;
use serde_json::{Value, json};
use std::fmt::Write;

#[derive(Clone)]
pub(crate) struct Target {
    /// Description of the target.
    pub(crate) text: String,
    /// `true` if the result meets the target.
    pub(crate) met: bool,
}

impl Target {
    /// Creates a target with this description.
    pub(crate) fn new(text: impl Into<String>, met: bool) -> Self {
        Self { text: text.into(), met }
    }
}

/// An upper bound of a rate.
pub(crate) struct Bound {
    /// Name of the bound.
    pub(crate) name: &'static str,
    /// Rate of the bound.
    pub(crate) rate: f64,
    /// Processor time of one operation in microseconds, if it is known.
    pub(crate) cost: Option<f64>,
}

impl Bound {
    /// Creates a bound with only a rate.
    pub(crate) const fn new(name: &'static str, rate: f64) -> Self {
        Self { name, rate, cost: None }
    }

    /// Creates a bound from a sample.
    pub(crate) fn of(name: &'static str, sample: &Sample) -> Self {
        Self { name, rate: sample.rate(), cost: Some(sample.cost()) }
    }
}

/// A rate with its latencies.
pub(crate) struct Rate {
    /// The measured operation.
    pub(crate) what: String,
    /// Number of parallel connections.
    pub(crate) connections: usize,
    /// The measured sample.
    pub(crate) sample: Sample,
    /// The bounds of the rate.
    pub(crate) references: Vec<Bound>,
    /// The target of the rate.
    pub(crate) target: Option<Target>,
}

/// Any other result.
pub(crate) struct Quantity {
    /// The measured quantity.
    pub(crate) what: String,
    /// Its value.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Its target.
    pub(crate) target: Option<Target>,
}

/// The results of one database.
pub(crate) struct Report {
    /// Name of the database.
    pub(crate) database: &'static str,
    pub(crate) rates: Vec<Rate>,
    /// Comparisons of samples.
    pub(crate) comparisons: Vec<Comparison>,
    /// Other results.
    pub(crate) quantities: Vec<Quantity>,
    /// Points of the growth curves.
    pub(crate) points: Vec<Point>,
}

impl Report {
    /// Creates an empty report.
    pub(crate) const fn new(database: &'static str) -> Self {
        Self { database, rates: Vec::new(), comparisons: Vec::new(), quantities: Vec::new(), points: Vec::new() }
    }

    /// Adds a rate and prints it immediately, because a run takes minutes and may be interrupted.
    pub(crate) fn rate(&mut self, rate: Rate) {
        let Rate { what, connections, sample, .. } = &rate;
        let (per_second, p50, p99) =
            (grouped(sample.rate()), decimal(sample.quantile(0.5)), decimal(sample.quantile(0.99)));
        note(&format!("{what} at {connections} connections: {per_second}/s, p50 {p50} ms, p99 {p99} ms"));
        self.rates.push(rate);
    }

    /// Adds a point to a curve.
    pub(crate) fn point(&mut self, what: &'static str, axis: Axis, at: f64, rate: f64) {
        self.points.push(Point { what, axis, at, rate });
    }

    /// Adds a comparison and prints it.
    pub(crate) fn comparison(&mut self, comparison: Comparison) {
        note(&comparison.line());
        self.comparisons.push(comparison);
    }

    /// Adds a result that is not a rate.
    pub(crate) fn quantity(&mut self, what: impl Into<String>, value: f64, unit: &'static str, target: Option<Target>) {
        self.quantities.push(Quantity { what: what.into(), value, unit, target });
    }

    /// Formats the report as a text table.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{}\n", self.database);
        if !self.rates.is_empty() {
            let titles =
                ["", "conn.", "per s", "p50 ms", "p99 ms", "max ms", "server µs", "client µs", "others", "errors"];
            let mut rows = vec![titles.map(str::to_owned).to_vec()];
            rows[0].push("under load (ratio)".to_owned());
            rows[0].push("target".to_owned());
            rows.extend(self.rates.iter().map(Rate::cells));
            text += &aligned(&rows, &[0, 9, 10, 11]);
        }
        if !self.comparisons.is_empty() {
            text += "\n";
            let mut rows = vec![Comparison::titles()];
            rows.extend(self.comparisons.iter().map(Comparison::cells));
            text += &aligned(&rows, &[0, 7]);
        }
        if !self.quantities.is_empty() {
            text += "\n";
            let rows: Vec<_> = self.quantities.iter().map(Quantity::cells).collect();
            text += &aligned(&rows, &[0, 2, 3]);
        }
        text
    }

    /// Formats the report as JSON.
    pub(crate) fn json(&self) -> Value {
        let rates: Vec<_> = self.rates.iter().map(Rate::json).collect();
        let quantities: Vec<_> = self.quantities.iter().map(Quantity::json).collect();
        let comparisons: Vec<_> = self.comparisons.iter().map(Comparison::json).collect();
        json!({"database": self.database, "rates": rates, "comparisons": comparisons, "quantities": quantities})
    }
}

impl Bound {
    fn cell(&self, bounded: f64) -> String {
        let Self { name, rate, cost } = self;
        let cost = cost.map(|cost| format!(", {} µs each", grouped(cost))).unwrap_or_default();
        format!("{name} {} ({:.2}){cost}", grouped(*rate), bounded / rate)
    }

    fn json(&self) -> Value {
        json!({"name": self.name, "per_second": self.rate, "us": self.cost})
    }
}

impl Rate {
    /// Returns the share of the host's busy time that neither the server nor the client used.
    fn others(&self) -> f64 {
        let work = &self.sample.work;
        let busy = (work.server + work.client + work.others).as_secs_f64();
        if busy == 0.0 { 0.0 } else { work.others.as_secs_f64() / busy }
    }

    fn cells(&self) -> Vec<String> {
        let sample = &self.sample;
        let references: Vec<String> = self.references.iter().map(|bound| bound.cell(sample.rate())).collect();
        let mut errors: Vec<_> = sample.errors.iter().map(|(what, count)| format!("{count} {what}")).collect();
        if sample.turned_away() > 0 {
            errors.push(format!("{} turned away", sample.turned_away()));
        }
        vec![
            self.what.clone(),
            self.connections.to_string(),
            grouped(sample.rate()),
            decimal(sample.quantile(0.5)),
            decimal(sample.quantile(0.99)),
            decimal(sample.longest()),
            decimal(sample.cost()),
            decimal(sample.per_answer(sample.work.client)),
            format!("{:.0} %", self.others() * 100.0),
            if errors.is_empty() { "0".to_owned() } else { errors.join(", ") },
            references.join(", "),
            self.target.as_ref().map(verdict).unwrap_or_default(),
        ]
    }

    fn json(&self) -> Value {
        let sample = &self.sample;
        let references: Vec<_> = self.references.iter().map(Bound::json).collect();
        json!({
            "what": self.what, "connections": self.connections, "per_second": sample.rate(), "count": sample.count(),
            "seconds": sample.elapsed.as_secs_f64(), "p50_ms": sample.quantile(0.5), "p99_ms": sample.quantile(0.99),
            "max_ms": sample.longest(), "errors": sample.errors, "turned_away": sample.turned_away(),
            "server_us": sample.cost(), "client_us": sample.per_answer(sample.work.client),
            "others": self.others(), "references": references, "target": self.target.as_ref().map(target_json),
        })
    }
}

impl Quantity {
    fn cells(&self) -> Vec<String> {
        let target = self.target.as_ref().map(verdict).unwrap_or_default();
        vec![self.what.clone(), decimal(self.value), self.unit.to_owned(), target]
    }

    fn json(&self) -> Value {
        let target = self.target.as_ref().map(target_json);
        json!({"what": self.what, "value": self.value, "unit": self.unit, "target": target})
    }
}

fn verdict(target: &Target) -> String {
    format!("{}: {}", target.text, if target.met { "met" } else { "NOT MET" })
}

fn target_json(target: &Target) -> Value {
    json!({"text": target.text, "met": target.met})
}

/// Formats rows in columns, right-aligned except for the columns in `left`.
pub(crate) fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            // Writing into a string cannot fail.
            let _ = if left.contains(&column) {
                write!(line, "  {cell:<width$}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Formats a number with three significant digits, or as an integer if it has more.
pub(crate) fn decimal(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        middling if middling < 100.0 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// Formats a number of at least 100 without decimals, in groups of three digits.
pub(crate) fn grouped(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let shown = [7.25, 83.06, 999.6, 20_000.0, 1_234_567.0].map(grouped);
        assert_eq!(shown, ["7.2", "83.1", "1,000", "20,000", "1,234,567"]);
    }
}
