//! Regularity of the uses of a namespace.

use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Number of days with a use from which uses can be regular.
const LEAST_DAYS: usize = 4;
/// Longest pause of regular uses, in usual intervals. A longer one means that they have stopped.
const LONGEST_PAUSE: i64 = 2;
const WEEK: i64 = 7;
/// Number of days from whose uses the days of the week are learned, and the least number of them.
const LEARNED_DAYS: i64 = 4 * WEEK;
const LEAST_LEARNED_DAYS: i64 = 2 * WEEK;
/// Number of missed days of the week after which uses have stopped.
const MISSED: usize = 2;

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
    /// than four days, or neither on the same days of the week nor without a pause that is longer than twice the usual interval.
    pub fn of(days: &BTreeMap<i64, Timestamp>, today: i64) -> Option<Self> {
        if days.len() < LEAST_DAYS {
            return None;
        }
        let mut intervals: Vec<i64> = days.keys().zip(days.keys().skip(1)).map(|(day, next)| next - day).collect();
        intervals.sort_unstable();
        let every_days = *intervals.get(intervals.len() / 2)?;
        let longest = LONGEST_PAUSE.saturating_mul(every_days);
        let weekly = has_stopped_weekly(days, today);
        if weekly.is_none() && intervals.last().is_some_and(|pause| *pause > longest) {
            return None;
        }
        let minute_of = |at: &Timestamp| at.as_seconds().div_euclid(60).rem_euclid(24 * 60);
        let mut minutes = days.values().map(minute_of);
        let first = minutes.next()?;
        let minute = minutes.all(|minute| minute == first).then_some(first);
        let is_silent = weekly.unwrap_or_else(|| days.keys().next_back().is_some_and(|last| today - last > longest));
        Some(Self { every_days, minute, is_silent })
    }
}

/// Returns whether uses on certain days of the week, such as working days, have stopped. `None` if they have no such days. A
/// holiday is tolerated: of the days of the week that were used mostly, one in four may be missed.
fn has_stopped_weekly(days: &BTreeMap<i64, Timestamp>, today: i64) -> Option<bool> {
    let last = *days.keys().next_back()?;
    let start = last.saturating_sub(LEARNED_DAYS - 1).max(*days.keys().next()?);
    if last - start < LEAST_LEARNED_DAYS - 1 {
        return None;
    }
    let is_mostly_used = |weekday: &i64| {
        let alike = (start..=last).filter(|day| day.rem_euclid(WEEK) == *weekday);
        let (used, missed): (Vec<i64>, Vec<i64>) = alike.partition(|day| days.contains_key(day));
        used.len() > missed.len()
    };
    let weekdays: Vec<i64> = (0..WEEK).filter(is_mostly_used).collect();
    let is_due = |day: &i64| weekdays.contains(&day.rem_euclid(WEEK));
    let due = (start..=last).filter(is_due).count();
    let (expected, others): (Vec<i64>, Vec<i64>) = days.range(start..=last).map(|(day, _)| *day).partition(is_due);
    let is_regular = others.len() <= 1 && expected.len() * 4 >= due * 3;
    is_regular.then(|| (last + 1..today).filter(is_due).count() >= MISSED)
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

        /// Working days, of which one was a holiday.
        #[test]
        fn days_of_the_week_are_regular_until_two_are_missed(
            first in 0_i64..7, weeks in 3_i64..5, worked in 2_i64..6, holiday in 1_usize..8, pause in 0_i64..14,
        ) {
            let mut used: Vec<i64> = (0..weeks * 7).filter(|day| day % 7 < worked).map(|day| first + day).collect();
            used.remove(holiday.min(used.len() - 2));
            let last = used[used.len() - 1];
            let missed = (last + 1..last + pause).filter(|day| (day - first) % 7 < worked).count();
            let rhythm = Rhythm::of(&uses(used, 90), last + pause);
            prop_assert_eq!(rhythm.map(|rhythm| rhythm.is_silent), Some(missed >= 2));
        }

        #[test]
        fn days_without_a_pattern_are_not_regular(gap in 8_i64..20) {
            prop_assert_eq!(Rhythm::of(&uses([0, 1, 2, 2 + gap, 3 + gap, 4 + gap], 90), 30), None);
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
