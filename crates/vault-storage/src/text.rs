//! Encoding and parsing of URLs, dates and headers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Display;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use url::Url;
use vault_core::time::Timestamp;

/// All characters except letters, digits and `-._~`, which are unreserved in URLs (RFC 3986, section 2.3).
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &VALUE.remove(b'/');

/// Encodes `text` as a query value or a path segment.
pub(crate) fn encode_value(text: &str) -> impl Display {
    utf8_percent_encode(text, VALUE)
}

/// Encodes an object name as a path. Returns `None` if it contains segments that URL parsers interpret (`.` and `..`).
pub(crate) fn encode_name(name: &str) -> Option<impl Display> {
    let directs = |segment: &str| matches!(segment, "." | "..");
    (!name.split('/').any(directs)).then(|| utf8_percent_encode(name, PATH))
}

/// Encodes pairs as a form or query.
pub(crate) fn encode_pairs(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode_value(value))).collect();
    pairs.join("&")
}

/// Returns the URL in `text` in canonical form, or `None` if it has no host, which the signing code requires.
pub(crate) fn address(text: &str) -> Option<String> {
    Url::parse(text).ok().filter(Url::has_host).map(String::from)
}

/// Returns whether `text` is valid in a header value, which the signing code requires.
pub(crate) fn is_sendable(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// Parses an HTTP date to seconds since the epoch.
pub(crate) fn http_date(text: &str) -> Option<i64> {
    OffsetDateTime::parse(text, &Rfc2822).ok().map(OffsetDateTime::unix_timestamp)
}

/// Parses RFC 3339 text.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    Timestamp::from_rfc3339(text)
}

/// Formats a time as RFC 3339 in whole seconds, such as `2026-11-21T16:30:00Z`.
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
