//! The spellings of points in time that signed links use, in seconds since 1970-01-01T00:00:00Z.

use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, UtcDateTime};

/// `20261120T120000Z`, `2026-11-20T12:00Z`, `2026-11-20T12:00:00.5Z`, also with another offset; a day alone begins at
/// midnight. Fractions are dropped.
pub(super) fn parse(text: &str) -> Option<i64> {
    let time = if text.contains('T') {
        OffsetDateTime::parse(text, &Iso8601::PARSING)
    } else {
        Date::parse(text, &Iso8601::PARSING).map(|day| day.midnight().assume_utc())
    };
    time.ok().map(OffsetDateTime::unix_timestamp)
}

/// `2026-11-20T12:00:00Z`; `None` outside of the years 0 to 9999.
pub(crate) fn to_rfc3339(seconds: i64) -> Option<String> {
    UtcDateTime::from_unix_timestamp(seconds).ok()?.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_links_say() {
        for (text, instant) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-20T12:00:00Z", 1_795_176_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(parse(text), Some(instant), "{text}");
            assert_eq!(to_rfc3339(instant).as_deref(), Some(text));
        }
        for text in ["20261120T120000Z", "2026-11-20T12:00Z", "2026-11-20T12:00:00.999Z", "2026-11-20T13:00:00+01:00"] {
            assert_eq!(parse(text), Some(1_795_176_000), "{text}");
        }
        assert_eq!(parse("2026-11-20"), Some(1_795_132_800));
    }

    #[test]
    fn refuses_what_is_no_date() {
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-04-31T00:00Z",
            "2026-11-20T24:00Z",
            "2026-11-20T12:00",
            "2026-11-20T1\u{e9}:00Z",
            "+026-11-20",
            "2026112\u{e9}T12000Z",
            "20261320T120000Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(to_rfc3339(253_402_300_800), None);
    }
}
