//! Provider trusts that were recently found closed.

use super::FederationAudience;
use crate::credential::CredentialType;
use crate::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Target of a provider trust: an identity at a provider, and the address to which tokens for it are sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrustTarget {
    /// Type of the credential.
    pub kind: CredentialType,
    /// Address that receives the token.
    pub recipient: String,
    /// Audience of the token.
    pub audience: FederationAudience,
    /// Role, application or service account.
    pub identity: String,
}

/// Targets whose trust was found closed within the last hour, in memory only. A process that starts has found none.
#[derive(Debug, Default)]
pub struct ClosedTrusts(Mutex<HashMap<TrustTarget, Timestamp>>);

impl ClosedTrusts {
    /// Time for which a result is valid, in seconds. A trust that becomes open is refused within this time.
    pub const VALID_SECONDS: i64 = 3_600;
    /// Maximum number of targets.
    pub const MAX: usize = 10_000;

    /// Returns whether the trust of `target` was found closed within the last hour.
    pub fn contains(&self, target: &TrustTarget, now: Timestamp) -> bool {
        self.lock().get(target).is_some_and(|found| is_valid(*found, now))
    }

    /// Records that the trust of `target` is closed at `now`.
    pub fn insert(&self, target: TrustTarget, now: Timestamp) {
        let mut found = self.lock();
        if found.len() >= Self::MAX && !found.contains_key(&target) {
            found.retain(|_, found| is_valid(*found, now));
        }
        if found.len() >= Self::MAX && !found.contains_key(&target) {
            let oldest = found.iter().min_by_key(|(_, found)| **found).map(|(target, _)| target.clone());
            oldest.map(|oldest| found.remove(&oldest));
        }
        found.insert(target, now);
    }

    /// Removes the result for `target`.
    pub fn remove(&self, target: &TrustTarget) {
        self.lock().remove(target);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TrustTarget, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a result of the time `found` is valid. If the clock was moved back, it is not.
fn is_valid(found: Timestamp, now: Timestamp) -> bool {
    (0..ClosedTrusts::VALID_SECONDS * 1_000).contains(&now.millis_since(found))
}
