//! Regularity of the uses of a namespace.

use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Number of days with a use from which uses can be regular.
const LEAST_DAYS: usize = 4;
/// Longest pause of regular uses, in usual intervals. A longer one means that they have stopped.
const LONGEST_PAUSE: i64 = 2;

/// Regular uses: the usual interval, and whether they have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// Usual interval in days: the median of the intervals.
    pub every_days: i64,
    /// Minute of the UTC day, if the first use of every day was in the same one.
    pub minute: Option<i64>,
    /// `true` if the uses have stopped.
    pub is_silent: bool,
}

impl Rhythm {
    /// Returns the rhythm of uses by their first use of each day, on the day `today`. `None` if they are not regular: on fewer
    /// than four days, or with a pause between them that is longer than twice the usual interval.
    pub fn of(days: &BTreeMap<i64, Timestamp>, today: i64) -> Option<Self> {
        if days.len() < LEAST_DAYS {
            return None;
        }
        let mut intervals: Vec<i64> = days.keys().zip(days.keys().skip(1)).map(|(day, next)| next - day).collect();
        intervals.sort_unstable();
        let every_days = *intervals.get(intervals.len() / 2)?;
        let longest = LONGEST_PAUSE.saturating_mul(every_days);
        if intervals.last().is_some_and(|pause| *pause > longest) {
            return None;
        }
        let minute_of = |at: &Timestamp| at.as_seconds().div_euclid(60).rem_euclid(24 * 60);
        let mut minutes = days.values().map(minute_of);
        let first = minutes.next()?;
        let minute = minutes.all(|minute| minute == first).then_some(first);
        let is_silent = days.keys().next_back().is_some_and(|last| today - last > longest);
        Some(Self { every_days, minute, is_silent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY_MILLIS: i64 = 86_400_000;

    fn uses(days: impl IntoIterator<Item = i64>, minute: i64) -> BTreeMap<i64, Timestamp> {
        days.into_iter().map(|day| (day, Timestamp::from_millis(day * DAY_MILLIS + minute * 60_000 + 59_999))).collect()
    }

    proptest! {
        #[test]
        fn equal_intervals_are_regular_until_two_are_missed(
            first in 0_i64..10, every in 1_i64..8, count in 4_i64..10, minute in 0_i64..1_440, pause in 0_i64..30,
        ) {
            let last = first + every * (count - 1);
            let days = uses((0..count).map(|number| first + every * number), minute);
            let expected = Rhythm { every_days: every, minute: Some(minute), is_silent: pause > 2 * every };
            prop_assert_eq!(Rhythm::of(&days, last + pause), Some(expected));
        }

        #[test]
        fn fewer_than_four_days_are_not_regular(days in prop::collection::btree_set(0_i64..30, 0..4)) {
            prop_assert_eq!(Rhythm::of(&uses(days, 0), 30), None);
        }

        #[test]
        fn regular_uses_have_no_long_pause(
            days in prop::collection::btree_set(0_i64..30, 0..30), today in 30_i64..60,
        ) {
            let pauses: Vec<i64> = days.iter().zip(days.iter().skip(1)).map(|(day, next)| next - day).collect();
            if let Some(rhythm) = Rhythm::of(&uses(days, 90), today) {
                prop_assert!(pauses.contains(&rhythm.every_days));
                prop_assert!(pauses.iter().all(|pause| *pause <= 2 * rhythm.every_days));
            }
        }
    }

    #[test]
    fn usual_time_is_known_if_all_days_agree() {
        let mut days = uses(0..5, 125);
        assert_eq!(Rhythm::of(&days, 5).map(|rhythm| rhythm.minute), Some(Some(125)));
        days.extend(uses([5], 126));
        assert_eq!(Rhythm::of(&days, 5).map(|rhythm| rhythm.minute), Some(None));
    }
}
