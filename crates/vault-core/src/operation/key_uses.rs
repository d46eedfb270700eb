//! Uses of the keys of organizations that are not stored yet.

use crate::id::{KeyId, OrganizationId};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Numbers of seals with each key of an organization in the current minute. A process that crashes forgets them, which is little
/// compared with [the number at which a key is replaced](crate::organization::KEY_REPLACED_AT).
#[derive(Default)]
pub struct KeyUses(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    start: Option<Timestamp>,
    uses: HashMap<(OrganizationId, KeyId), i64>,
}

impl KeyUses {
    pub(crate) fn add(&self, organization: OrganizationId, key: KeyId, uses: i64) {
        *self.lock().uses.entry((organization, key)).or_default() += uses;
    }

    /// Returns the uses of past minutes and, with `everything`, of the current one, and forgets them.
    pub(crate) fn take(&self, now: Timestamp, everything: bool) -> Vec<((OrganizationId, KeyId), i64)> {
        let mut current = self.lock();
        let start = Some(now.floor_to_minute());
        if !everything && start == current.start {
            return Vec::new();
        }
        current.start = start;
        current.uses.drain().collect()
    }

    // A count is consistent at every point, so a panic elsewhere does not leave a partial change.
    fn lock(&self) -> MutexGuard<'_, Minute> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
