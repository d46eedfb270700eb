//! Throttling of logins: the number of attempts, and the lockout after failures.
//!
//! Attempts are counted in throttle buckets. Each network from which an account logged in within 90 days has its own
//! bucket, and all other networks share one. An attacker in another network therefore cannot lock the user out.
//! Attempts are counted before the password is hashed, so a crash, a parallel request or another replica does not gain
//! an extra guess. An attempt that the bucket does not allow is still evaluated, against a decoy: it writes the decoy's bucket
//! instead and changes nothing else. Neither time nor load therefore reveals whether an address exists.

use crate::digest::Digest;
use crate::time::Timestamp;

/// Consecutive attempts without a lockout.
pub const FREE_ATTEMPTS: u32 = 5;
/// Duration of the first lockout, in seconds. Each further attempt doubles it.
pub const FIRST_WAIT_SECONDS: i64 = 30;
/// Maximum duration of a lockout, in seconds.
pub const LONGEST_WAIT_SECONDS: i64 = 15 * 60;
/// Consecutive attempts after which a bucket is locked (NIST SP 800-63B-4 section 3.2.2).
pub const CLOSING_ATTEMPTS: u32 = 100;
/// Number of wrong passcodes after a correct password that disables time-based passcodes until a reset.
pub const WRONG_PASSCODES: u32 = 20;
/// Time for which a network is known after a login from it, in seconds: 90 days.
pub const NETWORK_KNOWN_SECONDS: i64 = 90 * 24 * 3600;
/// How old the latest login of a known network may be before a newer one is noted, in seconds: a day.
pub const NETWORK_NOTED_SECONDS: i64 = 24 * 3600;
/// Maximum number of known networks of an account. The least recently used one is removed first.
pub const KNOWN_NETWORKS: usize = 8;
/// Time after the latest wrong passcode until one is forgiven, in seconds: 7 days. Each further period forgives
/// another.
pub const FORGIVEN_SECONDS: i64 = 7 * 24 * 3600;

/// Attempts in one bucket since its last successful login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleCounter {
    /// Number of consecutive counted attempts.
    pub attempts: u32,
    /// Time of the latest counted attempt.
    pub latest: Option<Timestamp>,
}

/// Decision about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptDecision {
    /// Verify the password. The attempt is counted, and the bucket gets this value.
    Evaluate(ThrottleCounter),
    /// Refuse the attempt without counting it, whatever the password.
    Wait,
    /// Refuse the attempt without counting it, whatever the password. The bucket stays locked until a reset.
    Closed,
}

impl ThrottleCounter {
    /// Returns the duration of the lockout after the latest attempt, in seconds.
    pub fn wait_seconds(self) -> i64 {
        match self.attempts.checked_sub(FREE_ATTEMPTS) {
            None => 0,
            // Doubling 16 times far exceeds the maximum, and prevents an overflow of the shift.
            Some(beyond) => (FIRST_WAIT_SECONDS << beyond.min(16)).min(LONGEST_WAIT_SECONDS),
        }
    }

    /// Returns whether the latest attempt led to a temporary lockout.
    pub const fn is_locked_out(self) -> bool {
        self.attempts >= FREE_ATTEMPTS && !self.is_closed()
    }

    /// Decides an attempt at `now`. A clock that moved back does not shorten a lockout.
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

    /// Returns the end of the lockout at `now`, if any. A locked bucket has no end.
    pub fn waits_until(self, now: Timestamp) -> Option<Timestamp> {
        let end = self.latest?.plus_seconds(self.wait_seconds());
        (!self.is_closed() && now < end).then_some(end)
    }

    /// Returns whether the bucket is locked until a reset.
    pub const fn is_closed(self) -> bool {
        self.attempts >= CLOSING_ATTEMPTS
    }
}

/// Returns whether a network with the last login at `last_login` is still known at `now`.
pub fn network_is_known(last_login: Timestamp, now: Timestamp) -> bool {
    now.millis_since(last_login) <= NETWORK_KNOWN_SECONDS * 1000
}

/// A network from which an account has logged in, with its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginNetwork {
    /// Digest of the network.
    pub network: Digest,
    /// Time of the latest login from it.
    pub last_login_at: Timestamp,
    /// Attempts from it.
    pub class: ThrottleCounter,
}

/// The attempts on one account, by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrottleCounters {
    /// Attempts from all networks that are not known.
    pub shared: ThrottleCounter,
    /// Networks of earlier logins, including networks that are no longer known, in any order.
    pub networks: Vec<LoginNetwork>,
}

/// Identifies the bucket that counts an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketKey {
    /// The bucket that all unknown networks share.
    Shared,
    /// The bucket of a known network.
    Network(Digest),
}

/// Effect of a login on the buckets: the bucket of its network is reset and the network is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterLogin {
    /// Whether the shared bucket is reset, too.
    pub resets_shared: bool,
    /// Networks to remove, so that at most [`KNOWN_NETWORKS`] remain.
    pub forgotten: Vec<Digest>,
}

impl ThrottleCounters {
    /// Returns the bucket that counts an attempt from `network` at `now`.
    pub fn counting(&self, network: &Digest, now: Timestamp) -> (BucketKey, ThrottleCounter) {
        match self.known(network, now) {
            Some(known) => (BucketKey::Network(known.network), known.class),
            None => (BucketKey::Shared, self.shared),
        }
    }

    /// Returns the effect of a login from `network` at `now`.
    pub fn after_login(&self, network: &Digest, now: Timestamp) -> AfterLogin {
        let mut others: Vec<&LoginNetwork> = self.networks.iter().filter(|kept| kept.network != *network).collect();
        // Order equal times by digest, so that every store removes the same network.
        others.sort_by_key(|kept| (std::cmp::Reverse(kept.last_login_at), *kept.network.as_bytes()));
        AfterLogin {
            resets_shared: self.known(network, now).is_none() || self.shared.is_closed(),
            forgotten: others.iter().skip(KNOWN_NETWORKS - 1).map(|kept| kept.network).collect(),
        }
    }

    /// Returns the lock of logins at `now`.
    pub fn lock(&self, now: Timestamp) -> AttemptLock {
        let known = self.networks.iter().filter(|kept| network_is_known(kept.last_login_at, now));
        let classes: Vec<ThrottleCounter> = known.map(|kept| kept.class).chain([self.shared]).collect();
        AttemptLock {
            attempts: classes.iter().map(|class| class.attempts).max().unwrap_or_default(),
            waits_until: classes.iter().filter_map(|class| class.waits_until(now)).max(),
            closed: classes.iter().any(|class| class.is_closed()),
            since: classes
                .iter()
                .filter(|class| class.is_closed() || class.waits_until(now).is_some())
                .filter_map(|class| class.latest)
                .min(),
        }
    }

    fn known(&self, network: &Digest, now: Timestamp) -> Option<&LoginNetwork> {
        self.networks.iter().find(|kept| kept.network == *network && network_is_known(kept.last_login_at, now))
    }
}

/// Lock of an account's logins, over all of its buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptLock {
    /// Highest number of consecutive attempts in any bucket.
    pub attempts: u32,
    /// End of the longest current lockout.
    pub waits_until: Option<Timestamp>,
    /// Whether a bucket is locked.
    pub closed: bool,
    /// Start of the lock: the attempt that caused the earliest of the current lockouts and locked buckets.
    pub since: Option<Timestamp>,
}

/// Wrong passcodes after a correct password, over all buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrongPasscodes {
    /// Number of counted wrong passcodes.
    pub count: u32,
    /// Time of the latest counted wrong passcode.
    pub latest: Option<Timestamp>,
}

impl WrongPasscodes {
    /// Returns the number that counts at `now`. One is forgiven for each [`FORGIVEN_SECONDS`] since the latest. Nothing
    /// is forgiven after [`WRONG_PASSCODES`] is reached.
    pub fn at(self, now: Timestamp) -> u32 {
        if self.disables() {
            return self.count;
        }
        let since = self.latest.map_or(0, |latest| now.millis_since(latest)).max(0);
        let forgiven = u32::try_from(since / (FORGIVEN_SECONDS * 1000)).unwrap_or(u32::MAX);
        self.count.saturating_sub(forgiven)
    }

    /// Returns the counter with one more wrong passcode at `now`. A clock that moved back forgives nothing.
    pub fn plus_one(self, now: Timestamp) -> Self {
        let latest = self.latest.map_or(now, |latest| latest.max(now));
        Self { count: self.at(now).saturating_add(1), latest: Some(latest) }
    }

    /// Returns whether time-based passcodes are disabled until the passcode is reset.
    pub const fn disables(self) -> bool {
        self.count >= WRONG_PASSCODES
    }
}
