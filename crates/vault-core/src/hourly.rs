//! What may be done only so often within an hour.

use crate::time::Timestamp;

/// How long something is counted from its first time, in seconds: 1 h.
pub const HOUR_SECONDS: i64 = 3600;

/// How often something was done within the hour that began with its first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourlyLimit {
    /// How often.
    pub count: u32,
    /// The first time.
    pub since: Option<Timestamp>,
}

impl HourlyLimit {
    /// How often data may be compared with one credential. Against noise alone: whoever may save can compare
    /// fingerprints in the list.
    pub const MATCHES: u32 = 10;
    /// How many checks an organization may request.
    pub const CHECKS: u32 = 60;
    /// How many invitations of an organization may meet an address that has an account: the response reveals that it has
    /// one, perhaps in another organization.
    pub const ADDRESS_CONFLICTS: u32 = 20;

    /// How many seconds are left in which it is refused, if `most` times are allowed.
    pub fn refused_for(self, most: u32, now: Timestamp) -> Option<u32> {
        let left = self.since?.plus_seconds(HOUR_SECONDS).millis_since(now);
        let refused = self.count >= most && left > 0;
        refused.then(|| u32::try_from(left.div_euclid(1000) + 1).unwrap_or(u32::MAX))
    }

    /// With one more at `now`.
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
