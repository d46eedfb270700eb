//! Tables of the documentation that are generated from definitions.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

/// Compares the rows of a page's table, which follow its head `head`, with `rows`. With `ORGVAULT_UPDATE=1` in the
/// environment, writes them instead. Returns the text after the table.
///
/// # Panics
/// The table differs, or the page cannot be read.
pub fn assert_table(page: &Path, head: &str, rows: &str) -> String {
    let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (start, rest) = text.split_once(head).unwrap_or_else(|| panic!("{} has no table {head}", page.display()));
    let end = rest.lines().take_while(|line| line.starts_with("| ")).map(|line| line.len() + 1).sum();
    let (table, rest) = rest.split_at(end);
    if std::env::var_os("ORGVAULT_UPDATE").is_some() {
        std::fs::write(page, format!("{start}{head}{rows}{rest}")).unwrap();
    } else {
        assert_eq!(table, rows, "run this test with ORGVAULT_UPDATE=1 to rewrite {}", page.display());
    }
    rest.to_owned()
}

/// Metrics and their descriptions, and the labels of series, as the code registers them.
#[derive(Default)]
struct Metrics {
    descriptions: Mutex<BTreeMap<String, String>>,
    labels: Mutex<BTreeMap<String, BTreeMap<String, BTreeSet<String>>>>,
}

impl Metrics {
    fn describe(&self, name: &KeyName, text: &SharedString) {
        self.descriptions.lock().unwrap().insert(name.as_str().to_owned(), text.to_string());
    }

    fn register(&self, key: &Key) {
        let mut all = self.labels.lock().unwrap();
        let of_metric = all.entry(key.name().to_owned()).or_default();
        for label in key.labels() {
            of_metric.entry(label.key().to_owned()).or_default().insert(format!("`{}`", label.value()));
        }
    }
}

impl Recorder for Metrics {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&name, &text);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&name, &text);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.describe(&name, &text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.register(key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.register(key);
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.register(key);
        Histogram::noop()
    }
}

/// Returns a row for each metric that `register` describes: its name, its description, and the values of its labels.
/// The values of the labels in `open` are not listed.
///
/// # Panics
/// A series has no description.
pub fn metric_rows(open: &[&str], register: impl FnOnce()) -> String {
    let metrics = Metrics::default();
    metrics::with_local_recorder(&metrics, register);
    let (descriptions, mut labels) = (metrics.descriptions.into_inner().unwrap(), metrics.labels.into_inner().unwrap());
    let rows = descriptions.iter().map(|(name, text)| {
        let labels = labels.remove(name).unwrap_or_default();
        let labels = labels.into_iter().map(|(label, values)| match open.contains(&&*label) {
            true => format!(". Label `{label}`"),
            false => format!(". Label `{label}`: {}", values.into_iter().collect::<Vec<_>>().join(", ")),
        });
        format!("| `{name}` | {text}{} |\n", labels.collect::<String>())
    });
    let rows = rows.collect();
    assert!(labels.is_empty(), "series without a description: {labels:?}");
    rows
}
