//! Health of a credential, as far as it is known.

use crate::check::CheckReason;
use crate::time::Timestamp;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Default time before its expiry from which a credential is [`HealthState::Expiring`], in seconds: 14 days.
pub const EXPIRING_SECONDS: i64 = 14 * 24 * 3_600;

/// State of a credential in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(into = "&'static str")]
#[strum(serialize_all = "kebab-case")]
pub enum HealthState {
    /// It was not checked yet.
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

named!(HealthState);

/// Result of the last check of the current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastCheck {
    /// Time of the check.
    pub at: Timestamp,
    /// Time since which all checks have had the same result.
    pub since: Timestamp,
    /// Reason of the failure. `None` if the check succeeded.
    pub failed: Option<CheckReason>,
}

impl LastCheck {
    /// Returns the result of a check at `at` that follows `before`. Failures for different reasons count as the same
    /// result.
    pub fn after(before: Option<Self>, at: Timestamp, failed: Option<CheckReason>) -> Self {
        let same = before.filter(|before| before.failed.is_some() == failed.is_some());
        Self { at, since: same.map_or(at, |before| before.since.min(at)), failed }
    }
}

/// Health of a credential at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// State: the first that applies of expired, failing, expiring, healthy and unchecked.
    pub state: HealthState,
    /// Reason of the failure.
    pub reason: Option<CheckReason>,
    /// Time of the last check.
    pub checked_at: Option<Timestamp>,
    /// Time since which it has this state, if known.
    pub since: Option<Timestamp>,
}

impl Health {
    /// Returns the health at `now` of a credential that expires at `expires_at`.
    pub fn at(now: Timestamp, expires_at: Option<Timestamp>, check: Option<LastCheck>) -> Self {
        let warns_at = expires_at.map(|at| at.plus_seconds(-EXPIRING_SECONDS));
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

/// Returns the earlier of two expiries: the declared one and the one in the data.
pub fn effective_expiry(declared: Option<Timestamp>, seen: Option<Timestamp>) -> Option<Timestamp> {
    [declared, seen].into_iter().flatten().min()
}
