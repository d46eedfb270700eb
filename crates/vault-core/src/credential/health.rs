//! Whether a credential works, as far as is known.

use crate::check::CheckReason;
use crate::time::Timestamp;

/// How long before its expiry a credential is [`HealthState::Expiring`], unless configured otherwise, in seconds: 14 days.
pub const EXPIRING_SECONDS: i64 = 14 * 24 * 3_600;

/// The state that a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthState {
    /// Nobody has checked it.
    Unchecked,
    /// The last check succeeded.
    Healthy,
    /// The last check failed.
    Failing,
    /// It expires soon.
    Expiring,
    /// It has expired.
    Expired,
}

impl HealthState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Unchecked, Self::Healthy, Self::Failing, Self::Expiring, Self::Expired];

    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchecked => "unchecked",
            Self::Healthy => "healthy",
            Self::Failing => "failing",
            Self::Expiring => "expiring",
            Self::Expired => "expired",
        }
    }

    /// Returns the state with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Result of the last check of the current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastCheck {
    /// Time of the event.
    pub at: Timestamp,
    /// Since when every check has found the same.
    pub since: Timestamp,
    /// Why it failed; `None`: it succeeded.
    pub failed: Option<CheckReason>,
}

impl LastCheck {
    /// The record of a check at `at` that follows `before`. Checks that fail for another reason are the same state.
    pub fn after(before: Option<Self>, at: Timestamp, failed: Option<CheckReason>) -> Self {
        let same = before.filter(|before| before.failed.is_some() == failed.is_some());
        Self { at, since: same.map_or(at, |before| before.since.min(at)), failed }
    }
}

/// A credential's health at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// The first that holds of expired, failing, expiring, healthy, unchecked.
    pub state: HealthState,
    /// Why it fails.
    pub reason: Option<CheckReason>,
    /// When it was last checked.
    pub checked_at: Option<Timestamp>,
    /// Since when it has had the state, where that is known.
    pub since: Option<Timestamp>,
}

impl Health {
    /// The health at `now` of a credential that expires at `expires_at`, `expiring_seconds` being how early that is told.
    pub fn at(now: Timestamp, expires_at: Option<Timestamp>, expiring_seconds: i64, check: Option<LastCheck>) -> Self {
        let warns_at = expires_at.map(|at| at.plus_seconds(expiring_seconds.saturating_neg()));
        let (state, since) = match (expires_at, warns_at, check) {
            (Some(at), _, _) if at <= now => (HealthState::Expired, Some(at)),
            (_, _, Some(LastCheck { failed: Some(_), since, .. })) => (HealthState::Failing, Some(since)),
            (_, Some(at), _) if at <= now => (HealthState::Expiring, Some(at)),
            (_, _, Some(check)) => (HealthState::Healthy, Some(check.since)),
            (_, _, None) => (HealthState::Unchecked, None),
        };
        let reason = check.and_then(|check| check.failed).filter(|_| state == HealthState::Failing);
        Self { state, reason, checked_at: check.map(|check| check.at), since }
    }
}

/// The earlier of two expiries: what its owner declared and what the data itself says.
pub fn effective_expiry(declared: Option<Timestamp>, seen: Option<Timestamp>) -> Option<Timestamp> {
    [declared, seen].into_iter().flatten().min()
}
