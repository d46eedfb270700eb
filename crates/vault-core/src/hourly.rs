//! Limits of actions per hour.

use crate::time::Timestamp;

/// Counting period, from the first occurrence, in seconds: 1 h.
pub const HOUR_SECONDS: i64 = 3600;

/// Subject of the count of addresses that are already in use.
pub(crate) const ADDRESS_CONFLICTS: &str = "address conflicts";

/// Number of occurrences in the hour that started with the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourlyLimit {
    /// Number of occurrences.
    pub count: u32,
    /// Time of the first occurrence.
    pub since: Option<Timestamp>,
}

impl HourlyLimit {
    /// Limit of data comparisons per credential. It only prevents excessive use: anyone who may save credentials can
    /// also compare fingerprints in lists.
    pub const MATCHES: u32 = 10;
    /// Limit of requested checks per organization.
    pub const CHECKS: u32 = 60;
    /// Limit of test events per receiver of an organization.
    pub const TESTS: u32 = 60;
    /// Limit of an organization's invitations for addresses that have an account: the response discloses that an
    /// account exists, perhaps in another organization.
    pub const ADDRESS_CONFLICTS: u32 = 20;

    /// Returns the number of seconds until the action is permitted again, if it is permitted `most` times.
    pub fn refused_for(self, most: u32, now: Timestamp) -> Option<u32> {
        let left = self.since?.plus_seconds(HOUR_SECONDS).millis_since(now);
        let refused = self.count >= most && left > 0;
        refused.then(|| u32::try_from(left.div_euclid(1000) + 1).unwrap_or(u32::MAX))
    }

    /// Returns the limit with one more occurrence at `now`.
    #[must_use]
    pub fn plus_one(self, now: Timestamp) -> Self {
        match self.since {
            Some(since) if now < since.plus_seconds(HOUR_SECONDS) => {
                Self { count: self.count.saturating_add(1), since: Some(since) }
            }
            _ => Self { count: 1, since: Some(now) },
        }
    }
}
