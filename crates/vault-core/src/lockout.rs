//! How many attempts a login gets, and how long it waits after failures.
//!
//! Attempts are counted in classes. Each network from which an account logged in within 90 days is one
//! class; all other networks together are one. So an attacker elsewhere cannot lock the owner out.
//! Only attempts that reach the password hash count, and they are counted before it runs: a crash, a
//! parallel request or another replica cannot win an extra guess.

use crate::time::Timestamp;

/// Attempts in a row without a wait.
pub const FREE_ATTEMPTS: u32 = 5;
/// The first wait, in seconds; each further attempt doubles it.
pub const FIRST_WAIT_SECONDS: i64 = 30;
/// The longest wait, in seconds.
pub const LONGEST_WAIT_SECONDS: i64 = 15 * 60;
/// Attempts in a row after which a class is closed (NIST SP 800-63B-4 section 3.2.2).
pub const CLOSING_ATTEMPTS: u32 = 100;
/// Wrong passcodes after a right password after which the time-based passcode is disabled until reset.
pub const WRONG_PASSCODES: u32 = 20;
/// How long a network stays known after a login from it, in seconds: 90 days.
pub const NETWORK_KNOWN_SECONDS: i64 = 90 * 24 * 3600;
/// How many networks an account keeps as known; the one unused for longest is forgotten first.
pub const KNOWN_NETWORKS: usize = 8;
/// Buckets that count the attempts on unknown addresses.
pub const UNKNOWN_ADDRESS_BUCKETS: u16 = 4_096;

/// The attempts of one class since its last successful login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptClass {
    /// Attempts counted in a row.
    pub attempts: u32,
    /// When the latest was counted.
    pub latest: Option<Timestamp>,
}

/// What an attempt may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptDecision {
    /// Count it (the class becomes this) and verify the password.
    Evaluate(AttemptClass),
    /// Refuse it unverified and uncounted.
    Wait,
    /// Refuse it unverified and uncounted; the class stays closed until it is reset.
    Closed,
}

impl AttemptClass {
    /// How long after the latest attempt the next one is refused, in seconds.
    pub fn wait_seconds(self) -> i64 {
        match self.attempts.checked_sub(FREE_ATTEMPTS) {
            None => 0,
            Some(beyond) => FIRST_WAIT_SECONDS
                .checked_shl(beyond)
                .filter(|_| beyond < 16)
                .map_or(LONGEST_WAIT_SECONDS, |wait| wait.min(LONGEST_WAIT_SECONDS)),
        }
    }

    /// Decides an attempt at `now`. A clock that was set back shortens no wait.
    pub fn decide(self, now: Timestamp) -> AttemptDecision {
        if self.attempts >= CLOSING_ATTEMPTS {
            return AttemptDecision::Closed;
        }
        if let Some(latest) = self.latest
            && now < latest.plus_seconds(self.wait_seconds())
        {
            return AttemptDecision::Wait;
        }
        let latest = self.latest.map_or(now, |latest| latest.max(now));
        AttemptDecision::Evaluate(Self { attempts: self.attempts + 1, latest: Some(latest) })
    }

    /// Whether the class is closed until it is reset.
    pub const fn is_closed(self) -> bool {
        self.attempts >= CLOSING_ATTEMPTS
    }
}

/// Whether a network last used at `last_login` still counts as known at `now`.
pub fn network_is_known(last_login: Timestamp, now: Timestamp) -> bool {
    now.millis_since(last_login) <= NETWORK_KNOWN_SECONDS * 1000
}
