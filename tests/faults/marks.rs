//! The branches that a fault is for: whether the service went through them, as its own metrics tell. A long campaign that never
//! reached one has shown less than it says, so it fails.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use vault_tests::process::Server;

/// The metrics that tell of branches.
const METRICS: [&str; 5] = [
    "orgvault_retries_total",
    "orgvault_commits_unsure_total",
    "orgvault_requests_repeated_total",
    "orgvault_events_taken_over_total",
    "orgvault_store_connection_wait_seconds_count",
];

/// How often servers went through branches.
#[derive(Default)]
pub(crate) struct Marks {
    /// As each server said last, by the address of its operators' listener, which no two servers have.
    of: HashMap<SocketAddr, BTreeMap<String, u64>>,
}

impl Marks {
    /// Reads the metrics of a server, if it answers. What it does afterwards is known only if it is read again.
    pub(crate) fn read(&mut self, server: &Server) {
        let Ok(answer) = server.admin_client().get("/metrics").try_send() else { return };
        let is_mark = |name: &str| METRICS.iter().any(|metric| name.split('{').next() == Some(*metric));
        let page = answer.text();
        let samples = page.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(name, _)| is_mark(name));
        let read: BTreeMap<_, _> =
            samples.filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?))).collect();
        if !read.is_empty() {
            self.of.insert(server.admin, read);
        }
    }

    /// How often each was passed, of all servers together.
    pub(crate) fn passed(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (name, count) in self.of.values().flatten().filter(|(_, count)| **count > 0) {
            *all.entry(short(name)).or_default() += count;
        }
        all
    }
}

/// A mark's name in reports: the metric without what all have, and the value of its label.
fn short(name: &str) -> String {
    let name = name.trim_start_matches("orgvault_").trim_end_matches('}');
    let (metric, label) = name.split_once('{').unwrap_or((name, ""));
    let metric = metric.trim_end_matches("_count").trim_end_matches("_total");
    let label = label.split('"').nth(1).unwrap_or_default();
    format!("{metric} {label}").trim_end().to_owned()
}

/// Which marks a fault has to pass, and from how many rounds on. At the rate at which runs of it passed the mark, a campaign of so many
/// rounds misses it by chance less than once in a million: the rate times the rounds is at least 14.
pub(crate) fn expected(fault: &str) -> &'static [(&'static str, usize)] {
    match fault {
        "one-way-cut" => &[("requests_repeated", 30)],
        "rotation" => &[("retries key-replaced", 12)],
        "lost-commits" => &[("commits_unsure", 12), ("requests_repeated", 20), ("retries connection-lost", 12)],
        "connections" => &[("retries connection-lost", 10), ("commits_unsure", 40)],
        "database" => &[("retries connection-lost", 10), ("commits_unsure", 40)],
        "failover" | "pooler" => &[("retries connection-lost", 8)],
        "pairs" => &[("retries connection-lost", 12), ("commits_unsure", 54)],
        _ => &[],
    }
}

/// The marks that a campaign of so many rounds should have passed and has not.
pub(crate) fn missed(fault: &str, rounds: usize, passed: &BTreeMap<String, u64>) -> Vec<String> {
    let due = expected(fault).iter().filter(|(mark, within)| rounds >= *within && !passed.contains_key(*mark));
    due.map(|(mark, _)| format!("{rounds} rounds never reached what counts `{mark}`, so they do not show that branch"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_short_names() {
        assert_eq!(short("orgvault_retries_total{reason=\"key-replaced\"}"), "retries key-replaced");
        assert_eq!(short("orgvault_commits_unsure_total"), "commits_unsure");
        let waits = "orgvault_store_connection_wait_seconds_count{outcome=\"gave-up\"}";
        assert_eq!(short(waits), "store_connection_wait_seconds gave-up");
    }
}
