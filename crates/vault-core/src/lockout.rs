//! How many attempts a login gets, and how long it waits after failures.
//!
//! Attempts are counted in classes. Each network from which an account logged in within 90 days is one
//! class; all other networks together are one. So an attacker elsewhere cannot lock the owner out.
//! Attempts are counted before the password is hashed: a crash, a parallel request or another replica cannot win an
//! extra guess. An attempt that the class does not allow is evaluated all the same, against a decoy: it writes a decoy
//! row in place of the class and changes nothing else. So neither time nor load reveals whether an
//! address exists.

use crate::digest::Digest;
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
/// Rows that take the writes of attempts that decide nothing. Each address has one of them, by digest.
pub const DECOYS: u16 = 4_096;
/// How long after the latest wrong passcode one is forgiven, in seconds: 7 days. After twice as long two are, and so on.
pub const FORGIVEN_SECONDS: i64 = 7 * 24 * 3600;

/// The decoy of the address with this digest.
pub(crate) fn decoy_of(address: &Digest) -> u16 {
    let [high, low, ..] = *address.as_bytes();
    u16::from_be_bytes([high, low]) % DECOYS
}

/// The attempts of one class since its last successful login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleCounter {
    /// Attempts counted in a row.
    pub attempts: u32,
    /// When the latest was counted.
    pub latest: Option<Timestamp>,
}

/// What an attempt may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptDecision {
    /// Count it (the class becomes this) and verify the password.
    Evaluate(ThrottleCounter),
    /// Refuse it uncounted, whatever its password.
    Wait,
    /// Refuse it uncounted, whatever its password; the class stays closed until it is reset.
    Closed,
}

impl ThrottleCounter {
    /// How long after the latest attempt the next one is refused, in seconds.
    pub fn wait_seconds(self) -> i64 {
        match self.attempts.checked_sub(FREE_ATTEMPTS) {
            None => 0,
            // Doubled 16 times it is far above the longest already.
            Some(beyond) => (FIRST_WAIT_SECONDS << beyond.min(16)).min(LONGEST_WAIT_SECONDS),
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

    /// Until when attempts are refused, if a wait lasts at `now`. A closed class has no end.
    pub fn waits_until(self, now: Timestamp) -> Option<Timestamp> {
        let end = self.latest?.plus_seconds(self.wait_seconds());
        (!self.is_closed() && now < end).then_some(end)
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

/// A network that an account has logged in from, with the class that counts its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginNetwork {
    /// The digest of the network.
    pub network: Digest,
    /// The latest login from it.
    pub last_login_at: Timestamp,
    /// Its attempts.
    pub class: ThrottleCounter,
}

/// The attempts of one account, by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrottleCounters {
    /// The attempts from every network that is not known.
    pub shared: ThrottleCounter,
    /// Networks of earlier logins, known or no longer known, in any order.
    pub networks: Vec<LoginNetwork>,
}

/// The class that counts an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKey {
    /// The one that all unknown networks share.
    Shared,
    /// That of a known network.
    Network(Digest),
}

/// What a login does to the classes: the class of its network begins anew and the network is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterLogin {
    /// Whether the shared class begins anew, too.
    pub resets_shared: bool,
    /// Networks that are forgotten, so that at most [`KNOWN_NETWORKS`] are kept.
    pub forgotten: Vec<Digest>,
}

impl ThrottleCounters {
    /// The class that counts an attempt from `network` at `now`.
    pub fn counting(&self, network: &Digest, now: Timestamp) -> (ClassKey, ThrottleCounter) {
        match self.known(network, now) {
            Some(known) => (ClassKey::Network(known.network), known.class),
            None => (ClassKey::Shared, self.shared),
        }
    }

    /// What a login from `network` at `now` does.
    pub fn after_login(&self, network: &Digest, now: Timestamp) -> AfterLogin {
        let mut others: Vec<&LoginNetwork> = self.networks.iter().filter(|kept| kept.network != *network).collect();
        // Of one moment by digest, so that every store forgets the same one.
        others.sort_by_key(|kept| (std::cmp::Reverse(kept.last_login_at), *kept.network.as_bytes()));
        AfterLogin {
            resets_shared: self.known(network, now).is_none() || self.shared.is_closed(),
            forgotten: others.iter().skip(KNOWN_NETWORKS - 1).map(|kept| kept.network).collect(),
        }
    }

    /// How far logins are locked at `now`.
    pub fn lock(&self, now: Timestamp) -> AttemptLock {
        let known = self.networks.iter().filter(|kept| network_is_known(kept.last_login_at, now));
        let classes: Vec<ThrottleCounter> = known.map(|kept| kept.class).chain([self.shared]).collect();
        AttemptLock {
            attempts: classes.iter().map(|class| class.attempts).max().unwrap_or_default(),
            waits_until: classes.iter().filter_map(|class| class.waits_until(now)).max(),
            closed: classes.iter().any(|class| class.is_closed()),
        }
    }

    fn known(&self, network: &Digest, now: Timestamp) -> Option<&LoginNetwork> {
        self.networks.iter().find(|kept| kept.network == *network && network_is_known(kept.last_login_at, now))
    }
}

/// How far the logins of an account are locked, over all of its classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptLock {
    /// The most attempts in a row that a class has counted.
    pub attempts: u32,
    /// The end of the longest wait that lasts.
    pub waits_until: Option<Timestamp>,
    /// Whether a class is closed.
    pub closed: bool,
}

/// Wrong passcodes after a right password, over all classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrongPasscodes {
    /// How many are counted.
    pub count: u32,
    /// When the latest was counted.
    pub latest: Option<Timestamp>,
}

impl WrongPasscodes {
    /// How many count at `now`: one is forgiven for each [`FORGIVEN_SECONDS`] since the latest. Once
    /// [`WRONG_PASSCODES`] are reached nothing is forgiven.
    pub fn at(self, now: Timestamp) -> u32 {
        if self.disables() {
            return self.count;
        }
        let since = self.latest.map_or(0, |latest| now.millis_since(latest)).max(0);
        let forgiven = u32::try_from(since / (FORGIVEN_SECONDS * 1000)).unwrap_or(u32::MAX);
        self.count.saturating_sub(forgiven)
    }

    /// With one more, counted at `now`. A clock that was set back forgives nothing.
    pub fn plus_one(self, now: Timestamp) -> Self {
        let latest = self.latest.map_or(now, |latest| latest.max(now));
        Self { count: self.at(now).saturating_add(1), latest: Some(latest) }
    }

    /// Whether time-based passcodes are disabled until the passcode is reset.
    pub const fn disables(self) -> bool {
        self.count >= WRONG_PASSCODES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_spread_over_all_decoys() {
        let digest = |number: u16| {
            let mut bytes = [0; 32];
            bytes[..2].copy_from_slice(&number.to_be_bytes());
            Digest::from_bytes(bytes)
        };
        let mut addresses = vec![0; usize::from(DECOYS)];
        (0..=u16::MAX).for_each(|number| addresses[usize::from(decoy_of(&digest(number)))] += 1);
        assert!(addresses.iter().all(|count| *count == 16), "evenly");
    }
}
