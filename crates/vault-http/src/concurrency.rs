//! Limits of concurrent requests per caller. A rate limit alone is not sufficient: if a storage provider or database
//! does not respond, a request lasts until its deadline, even if its client has disconnected.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of concurrent requests per caller to storage providers.
pub(crate) const STORAGE_REQUESTS: usize = 8;

type Counts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// Counts concurrent requests per caller.
pub(crate) struct ConcurrencyLimit<K: Eq + Hash> {
    limit: usize,
    counts: Counts<K>,
}

impl<K: Copy + Eq + Hash> ConcurrencyLimit<K> {
    /// Creates a limit of `limit` concurrent requests per caller.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, counts: Counts::default() }
    }

    /// Counts a request of `caller` until the permit is dropped. Returns `None` at the limit.
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

/// A request in progress. It moves to the task that does the work, so that the request counts until that has ended.
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
    // Each change is a single step, so a poisoned lock can still be used.
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
