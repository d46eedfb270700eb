//! How many requests each caller may have in progress at once. A rate alone does not bound that: a storage provider or a
//! database that does not answer keeps a request for as long as the deadlines allow, whether its client still waits or not.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most requests of one caller that wait for storage providers.
pub(crate) const STORAGE_REQUESTS: usize = 8;

type Counts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// Counts the requests in progress of each caller.
pub(crate) struct ConcurrencyLimit<K: Eq + Hash> {
    limit: usize,
    counts: Counts<K>,
}

impl<K: Copy + Eq + Hash> ConcurrencyLimit<K> {
    /// Each caller may have `limit` requests in progress.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, counts: Counts::default() }
    }

    /// Counts one more of `caller` until the permit is dropped; `None` at the limit.
    pub(crate) fn acquire(&self, caller: K) -> Option<Permit<K>> {
        let mut counts = lock(&self.counts);
        let count = counts.entry(caller).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Permit { counts: Arc::clone(&self.counts), caller })
    }
}

/// A request in progress. Moves to wherever the work is done, so that it counts until that has ended.
pub(crate) struct Permit<K: Eq + Hash> {
    counts: Counts<K>,
    caller: K,
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.caller);
            }
        }
    }
}

fn lock<K>(counts: &Mutex<HashMap<K, usize>>) -> MutexGuard<'_, HashMap<K, usize>> {
    // Each change is one step: counts are whole between any two.
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_number_and_those_that_ended_do_not_count() {
        let limit = ConcurrencyLimit::new(3);
        let mut permits: Vec<_> = std::iter::from_fn(|| limit.acquire(1)).collect();
        assert_eq!(permits.len(), 3);
        assert!(limit.acquire(2).is_some(), "another one is not affected");
        permits.pop();
        let again = limit.acquire(1);
        assert!(again.is_some() && limit.acquire(1).is_none());
        drop((again, permits));
        assert!(lock(&limit.counts).is_empty(), "nothing is kept of those that have nothing under way");
    }
}
