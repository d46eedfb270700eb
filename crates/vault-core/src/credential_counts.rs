//! Numbers of credentials in a vault, by health and by remaining time until they expire. They do not identify tenants.

use crate::check::CheckReason;
use crate::credential::{EXPIRING_SECONDS, Health, HealthState, LastCheck};
use crate::time::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A period in which expiring credentials are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ExpiryWindow {
    /// 24 hours.
    #[strum(to_string = "24h")]
    Day,
    /// 7 days.
    #[strum(to_string = "7d")]
    Week,
    /// 30 days.
    #[strum(to_string = "30d")]
    Month,
}

named!(ExpiryWindow);

impl ExpiryWindow {
    /// Returns its duration in seconds.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Day => 24 * 3_600,
            Self::Week => 7 * 24 * 3_600,
            Self::Month => 30 * 24 * 3_600,
        }
    }
}

/// Result of the last check of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Not checked.
    Never,
    /// The check succeeded.
    Succeeded,
    /// The check failed.
    Failed,
}

impl Checked {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Never, Self::Succeeded, Self::Failed];
}

/// Number of times in [`ExpiryBounds`].
pub const EXPIRY_BOUNDS: usize = 5;

/// Times that separate the groups of expiries, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryBounds {
    moments: [Timestamp; EXPIRY_BOUNDS],
    now: Timestamp,
}

impl ExpiryBounds {
    /// Creates the times for `now`.
    pub fn new(now: Timestamp) -> Self {
        let [day, week, month] = ExpiryWindow::ALL.map(|window| now.plus_seconds(window.seconds()));
        let mut moments = [now, now.plus_seconds(EXPIRING_SECONDS), day, week, month];
        moments.sort_unstable();
        Self { moments, now }
    }

    /// Returns the times.
    pub const fn moments(&self) -> &[Timestamp; EXPIRY_BOUNDS] {
        &self.moments
    }

    /// Returns the number of times before `expires_at`, or all of them if there is no expiry.
    pub fn before(&self, expires_at: Option<Timestamp>) -> usize {
        let is_before = |moment: &&Timestamp| expires_at.is_none_or(|expiry| **moment < expiry);
        self.moments.iter().filter(is_before).count()
    }
}

/// A group of credentials that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedCredentials {
    /// Results of their last checks.
    pub checked: Checked,
    /// Number of times in [`ExpiryBounds`] before their expiries.
    pub bounds_before: usize,
    /// Number of credentials.
    pub credentials: u64,
}

/// Numbers of credentials of all organizations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CredentialCounts {
    health: [u64; HealthState::ALL.len()],
    expiring: [u64; ExpiryWindow::ALL.len()],
}

impl CredentialCounts {
    /// Adds credentials that were counted with these times.
    pub fn add(&mut self, bounds: &ExpiryBounds, counted: CountedCredentials) {
        // No time is between the expiries of one group and the time that represents them.
        let expires_at = bounds.moments.get(counted.bounds_before).copied();
        let (now, reason) = (bounds.now, CheckReason::UnknownKey);
        let check = match counted.checked {
            Checked::Never => None,
            Checked::Succeeded => Some(LastCheck { at: now, since: now, failed: None }),
            Checked::Failed => Some(LastCheck { at: now, since: now, failed: Some(reason) }),
        };
        let state = Health::at(now, expires_at, check).state;
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

    /// Returns the number of credentials for each health.
    pub fn by_health(&self) -> impl Iterator<Item = (HealthState, u64)> {
        HealthState::ALL.into_iter().zip(self.health)
    }

    /// Returns the number of credentials that expire within each period. Expired ones are not included, and longer
    /// periods include the shorter ones.
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

    /// Each credential is counted according to its own health, whatever its expiry, and in the periods in which it
    /// expires.
    #[test]
    fn group_count_equals_sum_of_credentials() {
        let bounds = ExpiryBounds::new(NOW);
        let near = [-400 * DAY, -1, 0, 1, HOUR, DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 400 * DAY];
        let expiries = near.iter().flat_map(|seconds| [-1, 0, 1].map(|millis| seconds * 1_000 + millis));
        let expiries = expiries.map(|millis| Some(Timestamp::from_millis(NOW.as_millis() + millis))).chain([None]);
        for (expires_at, checked) in expiries.flat_map(|expiry| Checked::ALL.map(|checked| (expiry, checked))) {
            let failed = (checked == Checked::Failed).then_some(CheckReason::UnknownKey);
            let check = (checked != Checked::Never).then_some(LastCheck { at: NOW, since: NOW, failed });
            let expected = Health::at(NOW, expires_at, check).state;
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
