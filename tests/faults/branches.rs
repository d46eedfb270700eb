//! Checks that the service executed the branches that a fault is meant to test, by its own metrics. A long campaign
//! that never reached one of them fails, because it has not tested that branch.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use vault_tests::process::Server;

/// The metrics that count branches.
const METRICS: [&str; 5] = [
    "orgvault_retries_total",
    "orgvault_commits_indeterminate_total",
    "orgvault_requests_repeated_total",
    "orgvault_events_taken_over_total",
    "orgvault_store_connection_wait_seconds_count",
];

/// Counts of the branches that servers executed.
#[derive(Default)]
pub(crate) struct Branches {
    /// The last counts of each server, by the address of its admin listener, which is unique.
    of: HashMap<SocketAddr, BTreeMap<String, u64>>,
}

impl Branches {
    /// Reads the metrics of a server, if it responds. Later counts require another call.
    pub(crate) fn read(&mut self, server: &Server) {
        let Ok(answer) = server.admin_client().get("/metrics").try_send() else { return };
        let is_branch = |name: &str| METRICS.iter().any(|metric| name.split('{').next() == Some(*metric));
        let page = answer.text();
        let samples = page.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(name, _)| is_branch(name));
        let read: BTreeMap<_, _> =
            samples.filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?))).collect();
        if !read.is_empty() {
            self.of.insert(server.admin, read);
        }
    }

    /// Returns the sum of the counts of all servers.
    pub(crate) fn passed(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (name, count) in self.of.values().flatten().filter(|(_, count)| **count > 0) {
            *all.entry(short(name)).or_default() += count;
        }
        all
    }
}

/// Returns the name of a branch in reports: the metric without the common prefix and suffix, and the value of its label.
fn short(name: &str) -> String {
    let name = name.trim_start_matches("orgvault_").trim_end_matches('}');
    let (metric, label) = name.split_once('{').unwrap_or((name, ""));
    let metric = metric.trim_end_matches("_count").trim_end_matches("_total");
    let label = label.split('"').nth(1).unwrap_or_default();
    format!("{metric} {label}").trim_end().to_owned()
}

/// Returns the branches that a campaign of a fault must reach, each with the minimum number of rounds. At the measured
/// rate, the probability that a campaign of this length misses the branch by chance is less than one in a million: the
/// rate times the rounds is at least 14.
pub(crate) fn expected(fault: &str) -> &'static [(&'static str, usize)] {
    match fault {
        "one-way-cut" => &[("requests_repeated", 30)],
        "rotation" => &[("retries key-replaced", 12)],
        "lost-commits" => &[("commits_indeterminate", 12), ("requests_repeated", 20), ("retries connection-lost", 12)],
        "connections" => &[("retries connection-lost", 10), ("commits_indeterminate", 40)],
        "database" => &[("retries connection-lost", 10), ("commits_indeterminate", 40)],
        "failover" | "pooler" => &[("retries connection-lost", 8)],
        "pairs" => &[("retries connection-lost", 12), ("commits_indeterminate", 54)],
        _ => &[],
    }
}

/// Returns a message for each branch that a campaign of this length should have reached and did not.
pub(crate) fn missed(fault: &str, rounds: usize, passed: &BTreeMap<String, u64>) -> Vec<String> {
    let due = expected(fault).iter().filter(|(branch, within)| rounds >= *within && !passed.contains_key(*branch));
    due.map(|(branch, _)| {
        format!("{rounds} rounds never reached what counts `{branch}`, so they do not show that branch")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_have_short_names() {
        assert_eq!(short("orgvault_retries_total{reason=\"key-replaced\"}"), "retries key-replaced");
        assert_eq!(short("orgvault_commits_indeterminate_total"), "commits_indeterminate");
        let waits = "orgvault_store_connection_wait_seconds_count{outcome=\"timed-out\"}";
        assert_eq!(short(waits), "store_connection_wait_seconds timed-out");
    }
}
