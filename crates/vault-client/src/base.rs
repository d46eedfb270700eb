//! Base URL of the API.

use crate::ClientError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use ureq::http::Uri;

/// Scheme, host, port and base path of the API, without a trailing slash: `http://127.0.0.1:8080/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(String);

impl FromStr for BaseUrl {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        let trimmed = text.trim_end_matches('/');
        let authority = trimmed.strip_prefix("http://").or_else(|| trimmed.strip_prefix("https://"));
        let host = authority.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        // Refuse a user (`@`), because it would not be sent. Refuse query and fragment, because paths are appended.
        let sound =
            !host.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_graphic() && !b"@?#\\\"<>".contains(&byte));
        if sound { Ok(Self(trimmed.to_owned())) } else { Err(ClientError::BaseUrl) }
    }
}

impl BaseUrl {
    /// Returns the URL of the API of this process.
    pub(crate) fn local() -> Self {
        Self("http://localhost/v1".to_owned())
    }

    /// Returns whether no one on a network can read the traffic, because it is encrypted or does not leave the host.
    pub fn is_private(&self) -> bool {
        self.is_https() || self.is_loopback()
    }

    /// Returns whether the traffic is encrypted.
    pub(crate) fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }

    /// Returns whether the traffic does not leave the host.
    fn is_loopback(&self) -> bool {
        let authority = self.0.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
        // An address in brackets contains colons.
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => authority.split(':').next(),
        };
        let host = host.unwrap_or_default();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Returns whether both URLs address the same server: their origins are equal, or differ in the name of the loopback
    /// address.
    pub fn has_same_server(&self, other: &Self) -> bool {
        let of = |base: &Self| {
            let uri: Option<Uri> = base.0.parse().ok();
            let port = uri.as_ref().and_then(Uri::port_u16).unwrap_or(if base.is_https() { 443 } else { 80 });
            let host = uri.as_ref().and_then(Uri::host).map(str::to_lowercase).filter(|_| !base.is_loopback());
            (base.is_https(), host, port)
        };
        of(self) == of(other)
    }

    /// Returns the URL of the same path on a Unix socket, which has no host name and no TLS.
    pub(crate) fn on_socket(&self) -> Self {
        let path = self.0.splitn(4, '/').nth(3).map(|path| ["/", path].concat()).unwrap_or_default();
        Self(["http://localhost", &path].concat())
    }

    /// Returns the URL of `path`, which starts with a slash.
    pub(crate) fn join(&self, path: &str) -> String {
        [&self.0, path].concat()
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Encodes `text` as one segment of a path or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    /// Includes the dot, so that `.` and `..` are encoded.
    const SPECIAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    utf8_percent_encode(text, SPECIAL).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_scheme_host_and_optional_path() {
        for (text, sound) in [
            ("http://127.0.0.1:8080/v1", Some("http://127.0.0.1:8080/v1")),
            ("https://vault.example/v1/", Some("https://vault.example/v1")),
            ("http://[::1]:1", Some("http://[::1]:1")),
            ("", None),
            ("vault.example/v1", None),
            ("ftp://vault.example", None),
            ("http://", None),
            ("http:///v1", None),
            ("http://user:password@vault.example/v1", None),
            ("http://vault.example/v1?a=b", None),
            ("http://vault.example/v1#a", None),
            ("http://vault.example/v1 ", None),
        ] {
            assert_eq!(text.parse::<BaseUrl>().ok().map(|url| url.to_string()).as_deref(), sound, "{text}");
        }
    }

    #[test]
    fn spellings_of_loopback_are_one_server() {
        let is_same = |a: &str, b: &str| {
            let parse = |text: &str| text.parse::<BaseUrl>().expect("a URL");
            parse(a).has_same_server(&parse(b))
        };
        for (a, b) in [
            ("http://127.0.0.1:8080/v1", "http://localhost:8080/v1/"),
            ("http://[::1]:8080/v1", "http://127.0.0.2:8080"),
            ("https://vault.example/v1", "https://Vault.example:443/v1"),
        ] {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8081/v1"),
            ("http://127.0.0.1:8080/v1", "https://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/v1", "http://192.0.2.1:8080/v1"),
            ("https://vault.example/v1", "https://other.example/v1"),
        ] {
            assert!(!is_same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn url_on_socket_keeps_only_the_path() {
        for (text, expected) in
            [("https://vault.example:1/a/v1", "http://localhost/a/v1"), ("http://[::1]:1", "http://localhost")]
        {
            let url: BaseUrl = text.parse().expect("a URL");
            assert_eq!(url.on_socket().to_string(), expected);
        }
    }

    #[test]
    fn ids_cannot_leave_their_segment() {
        assert_eq!(encode("0193-ab"), "0193-ab");
        assert_eq!(encode("../login?a=b#c"), "%2E%2E%2Flogin%3Fa%3Db%23c");
        assert_eq!(encode("ä\r\n"), "%C3%A4%0D%0A");
    }
}
