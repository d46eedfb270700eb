//! How many credentials a vault holds, by health and by time left until they expire. The numbers name no tenant.

use crate::check::CheckReason;
use crate::credential::{Health, HealthState, LastCheck};
use crate::time::Timestamp;

/// A time until which expiring credentials are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpiryWindow {
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
}

impl ExpiryWindow {
    /// Every window, the shortest first.
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// The window's name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    /// Its length.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Day => 24 * 3_600,
            Self::Week => 7 * 24 * 3_600,
            Self::Month => 30 * 24 * 3_600,
        }
    }
}

/// What the last check of a credential found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// There was none.
    Never,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
}

impl Checked {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Never, Self::Succeeded, Self::Failed];
}

/// How many bounds [`ExpiryBounds`] has.
pub const EXPIRY_BOUNDS: usize = 5;

/// The moments at which a credential's expiry decides how it is counted, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryBounds {
    moments: [Timestamp; EXPIRY_BOUNDS],
    now: Timestamp,
    expiring_seconds: i64,
}

impl ExpiryBounds {
    /// Those of `now`, where a credential is expiring `expiring_seconds` before its expiry.
    pub fn new(now: Timestamp, expiring_seconds: i64) -> Self {
        let [day, week, month] = ExpiryWindow::ALL.map(|window| now.plus_seconds(window.seconds()));
        let mut moments = [now, now.plus_seconds(expiring_seconds.max(0)), day, week, month];
        moments.sort_unstable();
        Self { moments, now, expiring_seconds: expiring_seconds.max(0) }
    }

    /// The moments.
    pub const fn moments(&self) -> &[Timestamp; EXPIRY_BOUNDS] {
        &self.moments
    }

    /// How many of the moments are before `expires_at`; all of them if there is no expiry.
    pub fn before(&self, expires_at: Option<Timestamp>) -> usize {
        let is_before = |moment: &&Timestamp| expires_at.is_none_or(|expiry| **moment < expiry);
        self.moments.iter().filter(is_before).count()
    }
}

/// Credentials that are counted alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedCredentials {
    /// What their last checks found.
    pub checked: Checked,
    /// How many moments of [`ExpiryBounds`] are before their expiries.
    pub bounds_before: usize,
    /// How many they are.
    pub credentials: u64,
}

/// The credentials of all organizations, counted at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CredentialCounts {
    health: [u64; HealthState::ALL.len()],
    expiring: [u64; ExpiryWindow::ALL.len()],
}

impl CredentialCounts {
    /// Adds credentials that were counted with these bounds.
    pub fn add(&mut self, bounds: &ExpiryBounds, counted: CountedCredentials) {
        // No bound is between the expiries of one group and the moment that stands for them.
        let expires_at = bounds.moments.get(counted.bounds_before).copied();
        let (now, reason) = (bounds.now, CheckReason::UnknownKey);
        let check = match counted.checked {
            Checked::Never => None,
            Checked::Succeeded => Some(LastCheck { at: now, since: now, failed: None }),
            Checked::Failed => Some(LastCheck { at: now, since: now, failed: Some(reason) }),
        };
        let state = Health::at(now, expires_at, bounds.expiring_seconds, check).state;
        for (known, count) in HealthState::ALL.iter().zip(&mut self.health) {
            if *known == state {
                *count += counted.credentials;
            }
        }
        let Some(expires_at) = expires_at.filter(|expires_at| *expires_at > now) else { return };
        for (window, count) in ExpiryWindow::ALL.iter().zip(&mut self.expiring) {
            if expires_at <= now.plus_seconds(window.seconds()) {
                *count += counted.credentials;
            }
        }
    }

    /// How many credentials have each health.
    pub fn by_health(&self) -> impl Iterator<Item = (HealthState, u64)> {
        HealthState::ALL.into_iter().zip(self.health)
    }

    /// How many credentials expire within each window. Those that have expired are in none; the longer windows include the
    /// shorter ones.
    pub fn by_expiry(&self) -> impl Iterator<Item = (ExpiryWindow, u64)> {
        ExpiryWindow::ALL.into_iter().zip(self.expiring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_893_456_000_000);
    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

    /// Each credential is counted as its own health says, whatever its expiry, and in the windows that it expires in.
    #[test]
    fn a_group_counts_as_each_of_its_credentials_would() {
        for expiring_seconds in [0, HOUR, 3 * DAY, 14 * DAY, 400 * DAY] {
            let bounds = ExpiryBounds::new(NOW, expiring_seconds);
            let near = [-400 * DAY, -1, 0, 1, HOUR, DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 400 * DAY];
            let expiries = near.iter().flat_map(|seconds| [-1, 0, 1].map(|millis| seconds * 1_000 + millis));
            let expiries = expiries.map(|millis| Some(Timestamp::from_millis(NOW.as_millis() + millis))).chain([None]);
            for (expires_at, checked) in expiries.flat_map(|expiry| Checked::ALL.map(|checked| (expiry, checked))) {
                let failed = (checked == Checked::Failed).then_some(CheckReason::UnknownKey);
                let check = (checked != Checked::Never).then_some(LastCheck { at: NOW, since: NOW, failed });
                let expected = Health::at(NOW, expires_at, expiring_seconds, check).state;
                let mut stock = CredentialCounts::default();
                let bounds_before = bounds.before(expires_at);
                stock.add(&bounds, CountedCredentials { checked, bounds_before, credentials: 3 });
                for (state, count) in stock.by_health() {
                    assert_eq!(count, if state == expected { 3 } else { 0 }, "{expires_at:?} {checked:?} {state:?}");
                }
                for (window, count) in stock.by_expiry() {
                    let expires = expires_at.is_some_and(|at| at > NOW && at <= NOW.plus_seconds(window.seconds()));
                    assert_eq!(count, if expires { 3 } else { 0 }, "{expires_at:?} {window:?}");
                }
            }
        }
    }
}
