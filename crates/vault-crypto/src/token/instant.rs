//! Points in time as text, in one form: RFC 3339 in UTC, whole seconds, `T` and `Z` upper-case, four digits of year.

use time::{Date, Month, OffsetDateTime, Time};
use vault_core::time::Timestamp;

/// The text of a point in time, rounded down to a whole second.
pub(super) fn write(at: Timestamp) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(at.as_seconds()).ok()?;
    if !(0..=9999).contains(&at.year()) {
        return None;
    }
    let (date, (hour, minute, second)) = (at.date(), at.to_hms());
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// The point in time of a text in that form. A leap second has none.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if marks.iter().any(|(place, mark)| bytes[*place] != *mark) {
        return None;
    }
    let month = Month::try_from(number(&bytes[5..7])? as u8).ok()?;
    let date = Date::from_calendar_date(i32::from(number(&bytes[..4])?), month, number(&bytes[8..10])? as u8).ok()?;
    let (hour, minute, second) = (number(&bytes[11..13])?, number(&bytes[14..16])?, number(&bytes[17..19])?);
    let time = Time::from_hms(hour as u8, minute as u8, second as u8).ok()?;
    Some(Timestamp::from_millis(date.with_time(time).assume_utc().unix_timestamp() * 1000))
}

/// At most four digits.
fn number(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u16::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
