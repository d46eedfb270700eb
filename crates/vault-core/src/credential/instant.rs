//! The few spellings of points in time that signed links use. Seconds since 1970-01-01T00:00:00Z, in UTC.

/// `20261120T120000Z`
pub(super) fn parse_basic(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    if date.len() != 8 || time.len() != 6 {
        return None;
    }
    let field = |text: &str, from, to| number(text.get(from..to)?);
    let day = days(field(date, 0, 4)?, field(date, 4, 6)?, field(date, 6, 8)?)?;
    seconds(day, field(time, 0, 2)?, field(time, 2, 4)?, field(time, 4, 6)?)
}

/// `2026-11-20`, `2026-11-20T12:00Z` or `2026-11-20T12:00:00Z`, the last also with a fraction, which is dropped.
pub(super) fn parse_extended(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z')?),
        None => (text, "00:00"),
    };
    let whole = time.split_once('.').map_or(time, |(whole, _)| whole);
    let mut date = date.split('-').map(number);
    let mut time = whole.split(':').map(number);
    let day = days(date.next()??, date.next()??, date.next()??)?;
    let instant = seconds(day, time.next()??, time.next()??, time.next().unwrap_or(Some(0))?)?;
    (date.next().is_none() && time.next().is_none()).then_some(instant)
}

/// `2026-11-20T12:00:00Z`; `None` before 1970 or after 9999.
pub(crate) fn to_rfc3339(seconds: i64) -> Option<String> {
    const END: i64 = 253_402_300_800; // 10000-01-01T00:00:00Z
    if !(0..END).contains(&seconds) {
        return None;
    }
    let (year, month, day) = civil(seconds / 86_400);
    let second = seconds % 86_400;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

fn number(digits: &str) -> Option<i64> {
    ((1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

fn seconds(day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    (hour < 24 && minute < 60 && second < 60).then_some(day * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since the epoch, counted in years that begin in March, so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year_from_march = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let leap_days = year_from_march / 4 - year_from_march / 100 + year_from_march / 400;
    let days = year_from_march * 365 + leap_days + (153 * month_from_march + 2) / 5 + day - 1 - 719_468;
    // The 31st of a short month is a day of the next one.
    (civil(days) == (year, month, day)).then_some(days)
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_calendar() {
        for (text, instant) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-20T12:00:00Z", 1_795_176_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(parse_extended(text), Some(instant), "{text}");
            assert_eq!(to_rfc3339(instant).as_deref(), Some(text));
        }
        assert_eq!(parse_basic("20261120T120000Z"), Some(1_795_176_000));
    }

    #[test]
    fn every_day_is_itself() {
        for day in (0..2_932_896).step_by(97) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
    }

    #[test]
    fn refuses_other_spellings() {
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-04-31T00:00Z",
            "2026-11-20T24:00Z",
            "2026-11-20T12:00",
            "2026-11-20T12:00:00+01:00",
            "2026-11-20T1\u{e9}:00Z",
            "+026-11-20",
        ] {
            assert_eq!(parse_extended(text), None, "{text}");
        }
        for text in ["20261120", "20261120T1200Z", "2026112\u{e9}T12000Z", "20261320T120000Z"] {
            assert_eq!(parse_basic(text), None, "{text}");
        }
        assert_eq!(to_rfc3339(-1), None);
        assert_eq!(to_rfc3339(253_402_300_800), None);
    }
}
