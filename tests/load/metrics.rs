//! Counters of the server, read from its admin listener.

use crate::client::exchange;
use crate::vault::Server;
use crate::{Result, request};

/// Metric for the number of passwords compared with a hash.
const EVALUATIONS: &str = "orgvault_password_evaluations_total";

/// All counters at one moment.
pub(crate) struct Metrics(String);

impl Metrics {
    /// Reads the counters.
    pub(crate) fn read(server: &Server) -> Result<Self> {
        match exchange(server.admin, &request::get(server.admin, "/metrics"))? {
            (200, _, text) => Ok(Self(String::from_utf8(text)?)),
            (status, ..) => Err(format!("the metrics answered {status}").into()),
        }
    }

    /// Returns the number of passwords that were compared with a stored hash.
    pub(crate) fn evaluations(&self) -> u64 {
        self.count(EVALUATIONS)
    }

    /// Returns the number of logins with this outcome.
    pub(crate) fn logins(&self, outcome: &str) -> u64 {
        self.count(&format!("orgvault_logins_total{{outcome=\"{outcome}\"}}"))
    }

    /// Returns the value of one series, or 0 if it does not exist.
    fn count(&self, series: &str) -> u64 {
        let value = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_is_found_by_its_whole_name() {
        let text = "# TYPE orgvault_logins_total counter\norgvault_logins_total{outcome=\"wrong-password\"} 12\n\
                    orgvault_password_evaluations_total_more 3\norgvault_password_evaluations_total 17\n";
        let metrics = Metrics(text.to_owned());
        assert_eq!(metrics.evaluations(), 17);
        assert_eq!((metrics.logins("wrong-password"), metrics.logins("wrong")), (12, 0));
    }
}
