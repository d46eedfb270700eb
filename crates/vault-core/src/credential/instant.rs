//! Formats of times in signed links.

use crate::time::Timestamp;
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};

/// Parses `20261120T120000Z`, `2026-11-20T12:00Z` or `2026-11-20T12:00:00.5Z`, also with another offset. A date without
/// a time is midnight. Fractions of seconds are dropped.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let time = if text.contains('T') {
        OffsetDateTime::parse(text, &Iso8601::PARSING)
    } else {
        Date::parse(text, &Iso8601::PARSING).map(|day| day.midnight().assume_utc())
    };
    Some(Timestamp::from_millis(time.ok()?.unix_timestamp() * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_instants_in_links() {
        let seconds = |text| parse(text).map(Timestamp::as_seconds);
        for (text, instant) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-20T12:00:00Z", 1_795_176_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(seconds(text), Some(instant), "{text}");
        }
        for text in ["20261120T120000Z", "2026-11-20T12:00Z", "2026-11-20T12:00:00.999Z", "2026-11-20T13:00:00+01:00"] {
            assert_eq!(seconds(text), Some(1_795_176_000), "{text}");
        }
        assert_eq!(seconds("2026-11-20"), Some(1_795_132_800));
    }

    #[test]
    fn refuses_text_that_is_no_date() {
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
    }
}
