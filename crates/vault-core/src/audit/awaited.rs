//! Entries that this process recorded and that are not known to be in a checkpoint.

use crate::id::AuditId;
use std::collections::BTreeSet;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of IDs. Entries beyond it are not remembered.
const MOST: usize = 65_536;

/// IDs of committed entries that await their checkpoint. An entry that is removed before would leave no other trace.
#[derive(Debug, Default)]
pub struct AwaitedEntries(Mutex<BTreeSet<AuditId>>);

impl AwaitedEntries {
    /// Adds IDs of entries that were committed.
    pub(crate) fn add(&self, ids: impl IntoIterator<Item = AuditId>) {
        let mut awaited = self.lock();
        for id in ids {
            if awaited.len() < MOST {
                awaited.insert(id);
            }
        }
    }

    /// Removes and returns all IDs.
    pub(crate) fn take(&self) -> BTreeSet<AuditId> {
        mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AuditId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn number_of_awaited_entries_is_limited() {
        let awaited = AwaitedEntries::default();
        awaited.add((0..100_000_u128).map(|number| AuditId::from_uuid(Uuid::from_u128(number))));
        assert_eq!(awaited.take().len(), MOST);
        assert_eq!(awaited.take().len(), 0);
    }
}
