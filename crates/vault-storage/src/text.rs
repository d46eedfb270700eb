//! Small readers and writers of text: addresses, dates, the XML that stores answer with.

use time::format_description::well_known::{Rfc2822, Rfc3339};
use time::{OffsetDateTime, UtcDateTime};
use url::Url;
use vault_core::time::Timestamp;

/// `text` percent-encoded for an address: all but letters, digits and `-._~`; slashes too, unless they are kept.
fn encode(text: &str, keep_slash: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keep_slash && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// `text` as a value of a query, or as one segment of a path.
pub(crate) fn encode_value(text: &str) -> String {
    encode(text, false)
}

/// An object's name as a path. `None` where it has segments that addresses cannot hold, since their readers take
/// them for directions.
pub(crate) fn encode_name(name: &str) -> Option<String> {
    let directs = |segment: &str| matches!(segment, "." | "..");
    (!name.split('/').any(directs)).then(|| encode(name, true))
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

/// What stands in the first element `name` of an XML document, entities replaced. Only for the flat, well-known
/// answers of stores; an element of the same name further inside is found too.
pub(crate) fn element(document: &str, name: &str) -> Option<String> {
    elements(document, name).next().map(unescape)
}

/// What stands in each element `name`, as it stands there.
pub(crate) fn elements<'a>(document: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = document;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&*open)?;
        let (inside, after) = after.split_once(&*close)?;
        rest = after;
        Some(inside)
    })
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let Some((entity, after)) = after.split_once(';') else {
            plain.push('&');
            rest = after;
            continue;
        };
        let number = entity.strip_prefix("#x").map(|hex| u32::from_str_radix(hex, 16).ok());
        let number = number.or_else(|| entity.strip_prefix('#').map(|decimal| decimal.parse().ok()));
        let character = match entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => number.flatten().and_then(char::from_u32),
        };
        plain.extend(character);
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Seconds since the epoch of an HTTP date.
pub(crate) fn http_date(text: &str) -> Option<i64> {
    OffsetDateTime::parse(text, &Rfc2822).ok().map(OffsetDateTime::unix_timestamp)
}

/// The moment that RFC 3339 text names.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    let seconds = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp();
    Some(Timestamp::from_millis(seconds.saturating_mul(1000)))
}

/// RFC 3339 text of whole seconds, as `2026-11-21T16:30:00Z`.
pub(crate) fn rfc3339(time: Timestamp) -> Option<String> {
    UtcDateTime::from_unix_timestamp(time.as_seconds()).ok()?.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths() {
        assert_eq!(encode_name("a b/c+d/ü").as_deref(), Some("a%20b/c%2Bd/%C3%BC"));
        assert_eq!(encode_name("..a/b..").as_deref(), Some("..a/b.."));
        for name in ["..", "a/../b", "./a"] {
            assert_eq!(encode_name(name), None, "{name}");
        }
        assert_eq!(encode_pairs(&[("prefix", "a/b&c"), ("x", "")]), "prefix=a%2Fb%26c&x=");
    }

    #[test]
    fn elements_are_found_and_read() {
        let document = "<E><Code>No&amp;such</Code><K>a&#x41;&#66;&lt;&bad;</K><K>2</K></E>";
        assert_eq!(element(document, "Code").as_deref(), Some("No&such"));
        assert_eq!(element(document, "K").as_deref(), Some("aAB<"));
        assert_eq!(elements(document, "K").count(), 2);
        for broken in ["", "<K>", "</K><K>", "<K/>"] {
            assert_eq!(element(broken, "K"), None);
        }
        assert_eq!(unescape("a&b"), "a&b");
    }

    #[test]
    fn dates() {
        assert_eq!(http_date("Sat, 21 Nov 2026 16:30:00 GMT"), Some(1_795_278_600));
        assert_eq!(http_date("yesterday"), None);
        let time = Timestamp::from_millis(1_795_278_600_999);
        assert_eq!(rfc3339(time).as_deref(), Some("2026-11-21T16:30:00Z"));
        assert_eq!(moment("2026-11-21T17:30:00.999+01:00"), Some(Timestamp::from_millis(1_795_278_600_000)));
        assert_eq!(moment("2026-11-21"), None);
    }
}
