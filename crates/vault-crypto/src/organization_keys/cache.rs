//! In-memory entries, limited in number.

use super::OrganizationEntry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use vault_core::id::OrganizationId;

/// Number of entries that are compared to find one that has not been used for long.
const SAMPLE: usize = 16;

/// Entries by organization.
pub(super) struct Cache {
    entries: RwLock<HashMap<OrganizationId, Arc<OrganizationEntry>>>,
    capacity: usize,
    /// Number of insertions; the unit of an entry's last use.
    age: AtomicU64,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: RwLock::default(), capacity, age: AtomicU64::new(0) }
    }

    // In both methods: no code under the lock can panic halfway through a change, so a poisoned map is still
    // complete.

    pub(super) fn find(&self, organization: OrganizationId) -> Option<Arc<OrganizationEntry>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(&organization).cloned()?;
        let age = self.age.load(Ordering::Relaxed);
        // Stored only if it changes, so that busy threads do not contend for the cache line.
        if entry.last_used.load(Ordering::Relaxed) != age {
            entry.last_used.store(age, Ordering::Relaxed);
        }
        Some(entry)
    }

    /// Inserts an entry, replacing an earlier one of the same organization, or one that has not been used for long.
    pub(super) fn insert(&self, entry: Arc<OrganizationEntry>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity && !entries.contains_key(&entry.organization()) {
            let oldest = entries.values().take(SAMPLE).min_by_key(|entry| entry.last_used.load(Ordering::Relaxed));
            if let Some(organization) = oldest.map(|entry| entry.organization()) {
                entries.remove(&organization);
            }
        }
        let age = self.age.fetch_add(1, Ordering::Relaxed);
        entry.last_used.store(age, Ordering::Relaxed);
        entries.insert(entry.organization(), entry);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}
