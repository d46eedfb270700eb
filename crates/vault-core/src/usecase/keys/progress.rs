//! Progress of a key rotation.

use crate::id::KeyId;
use crate::port::StoreError;
use std::collections::HashSet;
use std::hash::Hash;

/// Result of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationEnd {
    /// Keys that this process destroyed.
    pub destroyed: Vec<KeyId>,
    /// Keys that were not destroyed because they protect damaged rows, with the number of these rows.
    pub kept: Vec<(KeyId, i64)>,
}

/// Progress of one process through the rows under the retiring keys. The rows of a key consist of several parts, each
/// read in the order of its row keys.
pub(super) struct Progress<Part, Place> {
    /// Keys and parts to move, in order.
    targets: Vec<(KeyId, Part)>,
    after: Option<Place>,
    /// Number of rows to skip at the next read, because others are moving the same ones.
    pub(super) skip: usize,
    /// Whether any row was to be moved in the current pass through the first target.
    fresh: bool,
    /// Damaged rows, which cannot be moved.
    pub(super) damaged: HashSet<(Part, Place)>,
    /// Keys that this process destroyed.
    pub(super) destroyed: Vec<KeyId>,
    /// Rows under kept keys when the last pass ended, and how many passes have ended since without fewer of them.
    last: (i64, usize),
}

/// Passes that may end without progress, because rows change place concurrently. After them, the rows that remain are such as
/// no pass can move.
const IDLE_PASSES: usize = 3;

/// Where to look for rows to move.
pub(super) struct Search<Part, Place> {
    pub(super) key: KeyId,
    pub(super) part: Part,
    pub(super) after: Option<Place>,
    pub(super) skip: usize,
}

impl<Part: Copy + Eq + Hash, Place: Copy + Eq + Hash> Progress<Part, Place> {
    /// Creates the progress through all `parts` of each key.
    pub(super) fn through(keys: &[KeyId], parts: &[Part]) -> Self {
        Self::over(keys.iter().flat_map(|key| parts.iter().map(|part| (*key, *part))).collect())
    }

    /// Creates the progress through these parts of keys, in order.
    pub(super) fn over(targets: Vec<(KeyId, Part)>) -> Self {
        let (damaged, destroyed) = (HashSet::new(), Vec::new());
        Self { targets, after: None, skip: 0, fresh: false, damaged, destroyed, last: (i64::MAX, 0) }
    }

    /// Returns the next rows to move, with their key and part.
    pub(super) async fn claim<Row, Found>(
        &mut self,
        find: impl Fn(Search<Part, Place>) -> Found + Send,
        place: impl Fn(&Row) -> Place + Send,
    ) -> Result<Option<(KeyId, Part, Vec<Row>)>, StoreError>
    where
        Found: Future<Output = Result<Vec<Row>, StoreError>> + Send,
    {
        while let Some((key, part)) = self.targets.first().copied() {
            let skip = std::mem::take(&mut self.skip);
            let mut rows = find(Search { key, part, after: self.after, skip }).await?;
            let Some(last) = rows.last() else {
                // At the end of a pass. Rows that others had claimed when this process passed them may still exist, so
                // another pass is needed unless this one found nothing.
                let seen_all = !self.fresh && skip == 0;
                (self.after, self.fresh) = (None, false);
                if seen_all {
                    self.targets.remove(0);
                }
                continue;
            };
            self.after = Some(place(last));
            rows.retain(|row| !self.damaged.contains(&(part, place(row))));
            if !rows.is_empty() {
                self.fresh = true;
                return Ok(Some((key, part, rows)));
            }
        }
        Ok(None)
    }

    /// Returns the result if only damaged rows remain under the keys that are `kept`. Otherwise restarts the progress
    /// as in `again`.
    pub(super) fn end(&mut self, kept: Vec<(KeyId, i64)>, again: Self) -> Option<RotationEnd> {
        let damaged = i64::try_from(self.damaged.len()).unwrap_or(i64::MAX);
        let rows = kept.iter().fold(0_i64, |sum, (_, rows)| sum.saturating_add(*rows));
        let (before, idle) = self.last;
        self.last = if rows < before { (rows, 0) } else { (before, idle + 1) };
        if rows <= damaged || self.last.1 >= IDLE_PASSES {
            return Some(RotationEnd { destroyed: self.destroyed.clone(), kept });
        }
        self.targets = again.targets;
        (self.after, self.skip, self.fresh) = (None, 0, false);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn key(number: u8) -> KeyId {
        KeyId::from_bytes([number; 16])
    }

    type Claimed = Option<(KeyId, u8, Vec<u8>)>;

    /// Claims rows if `find` is ready immediately.
    fn claim<Found>(progress: &mut Progress<u8, u8>, find: impl Fn(Search<u8, u8>) -> Found + Send + Sync) -> Claimed
    where
        Found: Future<Output = Result<Vec<u8>, StoreError>> + Send,
    {
        let searches = AtomicUsize::new(0);
        let find = |search| {
            assert!(searches.fetch_add(1, Ordering::Relaxed) < 1_000, "a claim comes to an end");
            find(search)
        };
        progress.claim(find, |place| *place).now_or_never().unwrap().unwrap()
    }

    /// Outcome of claiming a row.
    #[derive(Clone, Copy, Debug)]
    enum Row {
        Moved,
        Damaged,
        /// Another process has claimed the row, which remains for this number of passes.
        Held(u8),
    }

    fn row() -> impl Strategy<Value = Row> {
        prop_oneof![4 => Just(Row::Moved), 1 => Just(Row::Damaged), 1 => (1..4_u8).prop_map(Row::Held)]
    }

    proptest! {
        /// Each row is claimed until it is moved or found damaged, and not again after that. The result contains the
        /// number of remaining rows of each key.
        #[test]
        fn rotation_stops_when_only_damaged_rows_remain(
            rows in prop::collection::btree_map((0..2_u8, 0..12_u8), (0..2_u8, row()), 0..24),
            skips in prop::collection::vec(0..6_usize, 0..6),
        ) {
            let left = Mutex::new(rows);
            let find = |search: Search<u8, u8>| {
                let left = left.lock().unwrap();
                let under = left.iter().filter(|((part, _), (of, _))| *part == search.part && key(*of) == search.key);
                let places = under.map(|((_, place), _)| *place);
                let behind = places.filter(|place| search.after.is_none_or(|after| *place > after));
                std::future::ready(Ok(behind.skip(search.skip).take(3).collect()))
            };
            let mut progress = Progress::through(&[key(0), key(1)], &[0, 1]);
            let (mut damaged, mut skips) = (BTreeSet::new(), skips.into_iter());
            for claims in 0.. {
                prop_assert!(claims < 300, "it comes to an end");
                let Some((under, part, places)) = claim(&mut progress, find) else { break };
                prop_assert!(!places.is_empty());
                for at in places.into_iter().map(|place| (part, place)) {
                    let mut left = left.lock().unwrap();
                    let Some((of, row)) = left.get_mut(&at) else { panic!("{at:?} was moved") };
                    prop_assert_eq!(key(*of), under);
                    match row {
                        Row::Held(times) if *times > 0 => *times -= 1,
                        Row::Damaged => {
                            prop_assert!(damaged.insert(at), "a damaged row is claimed once");
                            progress.damaged.insert(at);
                        }
                        Row::Held(_) | Row::Moved => _ = left.remove(&at),
                    }
                }
                progress.skip = skips.next().unwrap_or(0);
            }
            let left: BTreeSet<_> = left.into_inner().unwrap().into_keys().collect();
            prop_assert_eq!(left, damaged);
        }
    }

    #[test]
    fn conflicting_rows_are_retried_once() {
        let skipped = Mutex::new(Vec::new());
        let find = |search: Search<u8, u8>| {
            skipped.lock().unwrap().push((search.after, search.skip));
            let found = if search.after.is_none() && search.skip == 0 { vec![7] } else { Vec::new() };
            std::future::ready(Ok(found))
        };
        let mut progress = Progress::through(&[key(1)], &[0]);
        progress.skip = 5;
        let claimed = claim(&mut progress, find);
        assert_eq!(claimed, Some((key(1), 0, vec![7])), "rows left to others are read again");
        assert_eq!(skipped.into_inner().unwrap(), [(None, 5), (None, 0)]);
    }

    #[test]
    fn rotation_ends_when_only_damaged_rows_remain() {
        let find = |_: Search<u8, u8>| std::future::ready(Ok(Vec::new()));
        let mut progress = Progress::through(&[key(1)], &[0]);
        assert_eq!(claim(&mut progress, find), None);
        progress.damaged.extend([(0, 1), (0, 2)]);
        progress.destroyed.push(key(2));
        assert_eq!(progress.end(vec![(key(1), 2), (key(3), 1)], Progress::through(&[key(1), key(3)], &[0])), None);
        let again = |_: Search<u8, u8>| std::future::ready(Ok(vec![2, 3]));
        let claimed = claim(&mut progress, again);
        assert_eq!(claimed, Some((key(1), 0, vec![3])), "from the start, without damaged rows");
        let end = progress.end(vec![(key(1), 2)], Progress::through(&[key(1)], &[0]));
        assert_eq!(end, Some(RotationEnd { destroyed: vec![key(2)], kept: vec![(key(1), 2)] }));
    }
}
