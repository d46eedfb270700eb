//! How much of what waits for stores each asker has under way at once. A rate alone does not bound that: a store that
//! does not answer keeps a request for as long as the deadlines allow, whether its client still waits or not.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many requests of one asker may wait for stores at once.
const MOST: usize = 8;

type Counts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// Counts what each asker has under way.
pub(crate) struct UnderWay<K: Eq + Hash>(Counts<K>);

impl<K: Eq + Hash> Default for UnderWay<K> {
    fn default() -> Self {
        Self(Counts::default())
    }
}

impl<K: Copy + Eq + Hash> UnderWay<K> {
    /// Counts one more of `asker`, until what is returned is dropped; `None` if it has as many as it may.
    pub(crate) fn enter(&self, asker: K) -> Option<Entered<K>> {
        let mut counts = lock(&self.0);
        let count = counts.entry(asker).or_default();
        if *count >= MOST {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Entered { counts: Arc::clone(&self.0), asker })
    }
}

/// One that is under way. Goes wherever the work goes, so that it counts until that has ended.
pub(crate) struct Entered<K: Eq + Hash> {
    counts: Counts<K>,
    asker: K,
}

impl<K: Eq + Hash> Drop for Entered<K> {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.asker) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.asker);
            }
        }
    }
}

fn lock<K>(counts: &Mutex<HashMap<K, usize>>) -> MutexGuard<'_, HashMap<K, usize>> {
    // Each change is one step: there is nothing half done to be afraid of.
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_asker_has_its_own_number_and_those_that_ended_do_not_count() {
        let under_way = UnderWay::default();
        let mut entered: Vec<_> = std::iter::from_fn(|| under_way.enter(1)).collect();
        assert_eq!(entered.len(), MOST);
        assert!(under_way.enter(2).is_some(), "another one is not affected");
        entered.pop();
        let again = under_way.enter(1);
        assert!(again.is_some() && under_way.enter(1).is_none());
        drop((again, entered));
        assert!(lock(&under_way.0).is_empty(), "nothing is kept of those that have nothing under way");
    }
}
