//! Times and lifetimes. The clock is the port [`Clock`](crate::port::Clock).

use crate::field::{FieldCode, FieldError};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Times that have a textual form, from the year 1970 to 9999, in milliseconds.
const WRITABLE: RangeInclusive<i64> = 0..=253_402_300_799_999;

/// A time in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates the time `milliseconds` after the epoch.
    pub const fn from_millis(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded down.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns the time in RFC 3339, UTC, rounded down to a second: `2026-11-20T12:00:00Z`. Returns `None` before 1970
    /// and after 9999.
    pub fn to_rfc3339(self) -> Option<String> {
        self.rfc3339_ascii().map(|text| text.into_iter().map(char::from).collect())
    }

    /// Returns the characters of [`Timestamp::to_rfc3339`], all ASCII. Lists write thousands of times, so this neither allocates
    /// nor interprets a format.
    pub fn rfc3339_ascii(self) -> Option<[u8; 20]> {
        let writable = WRITABLE.contains(&self.0);
        let time = OffsetDateTime::from_unix_timestamp(self.as_seconds()).ok().filter(|_| writable)?;
        let year = u16::try_from(time.year()).ok()?;
        let pair = |number: u8| [b'0' + number / 10 % 10, b'0' + number % 10];
        let halves = |year: u16| (year / 100).try_into().ok().zip((year % 100).try_into().ok());
        let (century, year) = halves(year)?;
        let ([a, b], [c, d]) = (pair(century), pair(year));
        let [[e, f], [g, h]] = [u8::from(time.month()), time.day()].map(pair);
        let [[i, j], [k, l], [m, n]] = [time.hour(), time.minute(), time.second()].map(pair);
        Some([a, b, c, d, b'-', e, f, b'-', g, h, b'T', i, j, b':', k, l, b':', m, n, b'Z'])
    }

    /// Parses a time in RFC 3339, rounded down to a millisecond. Returns `None` if it is malformed, or before 1970 or
    /// after 9999.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let millis = time.unix_timestamp().checked_mul(1_000)?.checked_add(time.millisecond().into())?;
        WRITABLE.contains(&millis).then_some(Self(millis))
    }

    /// Returns the time rounded down to a whole second, which is the precision of tokens and responses.
    pub const fn floor_to_second(self) -> Self {
        Self(self.as_seconds() * 1000)
    }

    /// Returns the time truncated to the minute.
    pub const fn floor_to_minute(self) -> Self {
        Self(self.0.div_euclid(60_000) * 60_000)
    }

    /// Returns the time `seconds` later, saturating.
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// Returns the milliseconds from `earlier` to this time. Negative if `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The lifetime of an access token in whole seconds, within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u32);

impl Ttl {
    /// Minimum lifetime, in seconds.
    pub const MIN: u32 = 60;
    /// Highest maximum lifetime of any configuration, in seconds: one day.
    pub const MAX: u32 = 86_400;
    /// Default lifetime in seconds.
    pub const DEFAULT: u32 = 3_600;

    /// Validates the requested lifetime, or returns the default (at most `ceiling`).
    ///
    /// # Errors
    /// [`FieldCode::OutOfRange`] outside [`Ttl::MIN`] to `ceiling`. A lifetime is never changed silently.
    pub fn parse(wished: Option<i64>, ceiling: u32) -> Result<Self, FieldError> {
        let ceiling = ceiling.clamp(Self::MIN, Self::MAX);
        let Some(wished) = wished else { return Ok(Self(Self::DEFAULT.min(ceiling))) };
        match u32::try_from(wished) {
            Ok(seconds) if (Self::MIN..=ceiling).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(FieldError::new(
                "/ttl",
                FieldCode::OutOfRange,
                format!("must be {} to {ceiling} seconds", Self::MIN),
            )),
        }
    }

    /// Returns the lifetime in seconds.
    pub const fn as_seconds(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_formatted() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_868_799_000, "2000-02-29T23:59:59Z"),
            (1_795_176_000_000, "2026-11-20T12:00:00Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59Z"),
        ] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(time.to_rfc3339().as_deref(), Some(text));
            assert_eq!(Timestamp::from_rfc3339(text), Some(time.floor_to_second()));
        }
        for millis in [i64::MIN, -1, 253_402_300_800_000, i64::MAX] {
            assert_eq!(Timestamp::from_millis(millis).to_rfc3339(), None, "{millis}");
        }
    }

    #[test]
    fn timestamps_may_have_offset_and_fraction() {
        let read = |text| Timestamp::from_rfc3339(text).map(Timestamp::as_millis);
        for text in ["2026-11-20T12:00:00Z", "2026-11-20T13:00:00+01:00", "2026-11-20T12:00:00.0009Z"] {
            assert_eq!(read(text), Some(1_795_176_000_000), "{text}");
        }
        assert_eq!(read("2026-11-20T12:00:00.9999Z"), Some(1_795_176_000_999));
        for text in ["", "2026-11-20", "2026-11-20T12:00:00", "1795176000", "2026-02-30T12:00:00Z", "tomorrow"]
            .into_iter()
            .chain(["1969-12-31T23:59:59Z", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
