//! URLs that are accepted only as they are written.

use crate::integration::is_printable;
use url::Url;

/// Parses a URL with a host (RFC 3986), and rejects what a URL parser for browsers silently repairs: spaces, line breaks,
/// invisible characters, a missing host (`https:///x`) and port 0.
pub(crate) fn parse(text: &str) -> Option<Url> {
    let (_, rest) = text.split_once("://")?;
    let has_host = !rest.starts_with(['/', '\\', '?', '#', ':']);
    let is_plain = text.chars().all(|c| is_printable(c) && !c.is_whitespace() && c != '\\');
    Url::parse(text).ok().filter(|url| has_host && is_plain && url.has_host() && url.port() != Some(0))
}
