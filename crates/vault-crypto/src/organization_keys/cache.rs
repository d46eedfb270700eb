//! The entries in memory, bounded.

use super::OrganizationEntry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vault_core::id::OrganizationId;

/// How many entries are looked at to find one that has not been used for long.
const SAMPLE: usize = 16;

type Entries = HashMap<OrganizationId, Arc<OrganizationEntry>>;

/// Entries by organization.
pub(super) struct Cache {
    entries: RwLock<Entries>,
    capacity: usize,
    /// Counts insertions: the unit in which an entry's last use is told.
    age: AtomicU64,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: RwLock::default(), capacity, age: AtomicU64::new(0) }
    }

    pub(super) fn find(&self, organization: OrganizationId) -> Option<Arc<OrganizationEntry>> {
        let entry = self.read().get(&organization).cloned()?;
        let age = self.age.load(Ordering::Relaxed);
        // Written only when it changes, so that busy threads do not fight over the line.
        if entry.last_used.load(Ordering::Relaxed) != age {
            entry.last_used.store(age, Ordering::Relaxed);
        }
        Some(entry)
    }

    /// Whether it is this entry that is kept.
    pub(super) fn holds(&self, entry: &Arc<OrganizationEntry>) -> bool {
        self.read().get(&entry.organization()).is_some_and(|kept| Arc::ptr_eq(kept, entry))
    }

    /// Keeps an entry, unless one was kept meanwhile: that one then, since it may have uses left.
    pub(super) fn insert(&self, entry: Arc<OrganizationEntry>) -> Arc<OrganizationEntry> {
        let mut entries = self.write();
        if let Some(kept) = entries.get(&entry.organization()) {
            return Arc::clone(kept);
        }
        if entries.len() >= self.capacity {
            let oldest = entries.values().take(SAMPLE).min_by_key(|entry| entry.last_used.load(Ordering::Relaxed));
            if let Some(organization) = oldest.map(|entry| entry.organization()) {
                entries.remove(&organization);
            }
        }
        self.keep(&mut entries, &entry);
        entry
    }

    /// Keeps an entry in the place of what was kept.
    pub(super) fn replace(&self, entry: Arc<OrganizationEntry>) {
        let mut entries = self.write();
        // Forgotten meanwhile: then it stays so.
        if entries.contains_key(&entry.organization()) {
            self.keep(&mut entries, &entry);
        }
    }

    fn keep(&self, entries: &mut Entries, entry: &Arc<OrganizationEntry>) {
        let age = self.age.fetch_add(1, Ordering::Relaxed) + 1;
        entry.last_used.store(age, Ordering::Relaxed);
        entries.insert(entry.organization(), Arc::clone(entry));
    }

    pub(super) fn forget(&self, organization: OrganizationId) {
        self.write().remove(&organization);
    }

    /// Forgets this entry, but not one that was kept in its place.
    pub(super) fn forget_entry(&self, entry: &Arc<OrganizationEntry>) {
        let mut entries = self.write();
        if entries.get(&entry.organization()).is_some_and(|kept| Arc::ptr_eq(kept, entry)) {
            entries.remove(&entry.organization());
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().len()
    }

    // No code that holds the lock can panic half-way through a change, so a poisoned map is whole.
    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}
