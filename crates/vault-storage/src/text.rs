//! Small readers and writers of text: addresses and dates.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Display;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use url::Url;
use vault_core::time::Timestamp;

/// All but letters, digits and `-._~`, the characters that mean nothing in an address (RFC 3986, 2.3).
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &VALUE.remove(b'/');

/// `text` as a value of a query, or as one segment of a path.
pub(crate) fn encode_value(text: &str) -> impl Display {
    utf8_percent_encode(text, VALUE)
}

/// An object's name as a path. `None` where it has segments that addresses cannot hold, since their readers take
/// them for directions.
pub(crate) fn encode_name(name: &str) -> Option<impl Display> {
    let directs = |segment: &str| matches!(segment, "." | "..");
    (!name.split('/').any(directs)).then(|| utf8_percent_encode(name, PATH))
}

/// A form or query of these pairs.
pub(crate) fn encode_pairs(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode_value(value))).collect();
    pairs.join("&")
}

/// The address in `text` as every reader of addresses spells it. `None` where one of them would find none in it:
/// those who sign take for granted that there is one.
pub(crate) fn address(text: &str) -> Option<String> {
    Url::parse(text).ok().filter(Url::has_host).map(String::from)
}

/// Whether `text` can stand in a header field: those who sign take that for granted too.
pub(crate) fn is_sendable(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// Seconds since the epoch of an HTTP date.
pub(crate) fn http_date(text: &str) -> Option<i64> {
    OffsetDateTime::parse(text, &Rfc2822).ok().map(OffsetDateTime::unix_timestamp)
}

/// The moment that RFC 3339 text names.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    Timestamp::from_rfc3339(text)
}

/// RFC 3339 text of whole seconds, as `2026-11-21T16:30:00Z`.
pub(crate) fn rfc3339(time: Timestamp) -> Option<String> {
    time.to_rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths() {
        let path = |name| encode_name(name).map(|path| path.to_string());
        assert_eq!(path("a b/c+d/ü-._~").as_deref(), Some("a%20b/c%2Bd/%C3%BC-._~"));
        assert_eq!(path("..a/b..").as_deref(), Some("..a/b.."));
        for name in ["..", "a/../b", "./a"] {
            assert_eq!(path(name), None, "{name}");
        }
        assert_eq!(encode_pairs(&[("prefix", "a/b&c"), ("x", "")]), "prefix=a%2Fb%26c&x=");
    }

    #[test]
    fn dates() {
        assert_eq!(http_date("Sat, 21 Nov 2026 16:30:00 GMT"), Some(1_795_278_600));
        assert_eq!(http_date("yesterday"), None);
        let time = Timestamp::from_millis(1_795_278_600_999);
        assert_eq!(rfc3339(time).as_deref(), Some("2026-11-21T16:30:00Z"));
        assert_eq!(moment("2026-11-21T17:30:00.999+01:00"), Some(time));
        assert_eq!(moment("2026-11-21"), None);
    }
}
