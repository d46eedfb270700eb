//! URL of a direct link.

use super::shape::web_address;
use super::spec::FieldClass;
use super::value::{FieldAt, FieldValue};
use super::violation::Violation;
use super::{SecretText, hygiene, signature};
use crate::field::{FieldCode, FieldError};
use crate::json::{Node, write_text};
use crate::time::Timestamp;
use url::Url;
use zeroize::Zeroizing;

/// A link, stored exactly as entered, because a signature covers its spelling. It may contain a user and password, so
/// the whole URL is secret.
#[derive(Debug)]
pub struct Link(SecretText);

/// The visible part of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) scheme: &'static str,
    /// Host in lower case and A-labels, with the port unless it is the scheme's default.
    pub(super) host: String,
}

impl Link {
    /// Returns the whole URL. Every call states in a comment why it needs it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    pub(super) fn origin(&self) -> Option<Origin> {
        // Only scheme and host are returned.
        with_address(self.expose(), |scheme, url| {
            let host = url.host_str()?;
            let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
            Some(Origin { scheme, host })
        })?
    }

    /// Returns the expiry of the link's signature as RFC 3339 text, or `None` if the link does not contain it.
    pub fn expires_at(&self) -> Option<String> {
        self.expiry()?.to_rfc3339()
    }

    /// Returns the expiry of the link's signature, or `None` if the link does not contain it.
    pub fn expiry(&self) -> Option<Timestamp> {
        // Only a time is returned.
        let end = with_address(self.expose(), |_, url| signature::expiry(url))??;
        // A time that cannot be written as a date is not a real expiry.
        end.to_rfc3339().map(|_| end)
    }
}

/// Calls `read` with the URL in `text`, and wipes the parser's copy of it.
fn with_address<T>(text: &str, read: impl FnOnce(&'static str, &Url) -> T) -> Option<T> {
    let (scheme, url) = web_address(text)?;
    let result = read(scheme, &url);
    drop(Zeroizing::new(String::from(url)));
    Some(result)
}

/// Validates a new link, which has passed the checks for all fields.
fn check(text: &str) -> Result<(), Violation> {
    let checked = with_address(text, |scheme, url| {
        if scheme == "http" {
            return Err(Violation::new(FieldCode::NotAllowed, "must begin with https://"));
        }
        if url.fragment().is_some() {
            // A fragment is never sent, so a link that requires one is for browsers and is not direct.
            return Err(Violation::new(FieldCode::Malformed, "must not contain a fragment (#)"));
        }
        for (name, value) in url.query_pairs().filter(|(_, value)| value.len() >= 3) {
            let name = name.to_ascii_lowercase();
            let secret = ["sig", "token", "key", "password"].iter().any(|word| name.contains(word));
            let class = if secret { FieldClass::Secret } else { FieldClass::Location };
            hygiene::unfilled(&value, class).map_err(|violation| violation.of("a query parameter"))?;
        }
        Ok(())
    });
    checked.unwrap_or_else(|| Err(Violation::new(FieldCode::Malformed, "must be a URL that begins with https://")))
}

impl FieldValue for Link {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        let text = field.text(node)?;
        field.validate(|| check(text.expose()))?; // The result contains only fixed text.
        Ok(Self(text))
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self.expose(), sink); // The caller's sink determines the destination.
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(self.expose()); // For comparison with the fields that are not secret.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_scheme_and_host_only() {
        let origin = |text: &str| Link(text.into()).origin().map(|origin| (origin.scheme, origin.host));
        assert_eq!(origin("HTTPS://User:Pass@Host.Example:443/p?q"), Some(("https", "host.example".into())));
        assert_eq!(origin("https://host:8443/p"), Some(("https", "host:8443".into())));
        assert_eq!(origin("http://[::1]:80/"), Some(("http", "[::1]".into())));
        assert_eq!(origin("https://b\u{fc}cher.example/"), Some(("https", "xn--bcher-kva.example".into())));
        assert_eq!(origin("nonsense"), None);
    }

    #[test]
    fn reads_the_expiry_of_each_signature() {
        let expiry = |query: &str| Link(format!("https://h/p?{query}").into()).expires_at();
        let noon = Some("2026-11-20T12:00:00Z".to_owned());
        assert_eq!(expiry("X-Amz-Date=20261120T110000Z&X-Amz-Expires=3600&X-Amz-Signature=ab"), noon);
        assert_eq!(expiry("X-Goog-Date=20261120T110000Z&X-Goog-Expires=3600"), noon);
        assert_eq!(expiry("AWSAccessKeyId=a&Expires=1795176000&Signature=x"), noon);
        assert_eq!(expiry("sv=2024-01-01&se=2026-11-20T12%3A00%3A00Z&sig=x"), noon);
        assert_eq!(expiry("se=2026-11-20T12:00Z&sig=x"), noon);
        assert_eq!(expiry("se=2026-11-20&sig=x"), Some("2026-11-20T00:00:00Z".into()));
        let new_year = Some("2028-01-01T00:00:00Z".to_owned());
        for query in [
            "temp_url_sig=0011&temp_url_expires=1830297600",
            "temp_url_sig=0011&temp_url_expires=2028-01-01T00:00:00Z",
            "x-oss-signature-version=OSS4-HMAC-SHA256&x-oss-date=20271231T000000Z&x-oss-expires=86400&x-oss-signature=a",
            "x-oss-signature-version=OSS2&x-oss-expires=1830297600&x-oss-access-key-id=a&x-oss-signature=b",
            "OSSAccessKeyId=a&Expires=1830297600&Signature=b",
            "X-Obs-Date=20271231T000000Z&X-Obs-Expires=86400&X-Obs-Signature=a",
            "x-amz-date=20271231T000000Z&x-amz-expires=86400&x-amz-signature=a",
            "X-Tos-Date=20271231T000000Z&X-Tos-Expires=86400&X-Tos-Signature=a",
            "GoogleAccessId=a%40b.example&Expires=1830297600&Signature=b",
            "q-sign-algorithm=sha1&q-sign-time=1830290000;1830297600&q-key-time=1830290000;1830297600&q-signature=a",
            "q-sign-time=1830290000%3B1830299999&q-key-time=1830290000%3B1830297600&q-signature=a",
            "authorization=bce-auth-v1%2Fkey%2F2027-12-31T00%3A00%3A00Z%2F86400%2Fhost%2F0011",
            "Expires=1830297600&Signature=a&Key-Pair-Id=K1",
            // {"Statement":[{"Condition":{"DateLessThan":{"AWS:EpochTime":1830297600}}}]}
            "Policy=eyJTdGF0ZW1lbnQiOlt7IkNvbmRpdGlvbiI6eyJEYXRlTGVzc1RoYW4iOnsiQVdTOkVwb2NoVGltZSI6MTgzMDI5NzYwMH19fV19\
             &Signature=a&Key-Pair-Id=K1",
            "exp=1830297600&sig=0011",
            "e=1830297600&token=a:b",
            "expires=1830297600&token=a",
            "expires=1830297600&md5=a",
            "hdnts=st=1830290000~exp=1830297600~acl=%2F*~hmac=0011",
            // {"exp":1830297600}
            "token=eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE4MzAyOTc2MDB9.c2ln",
        ] {
            assert_eq!(expiry(query), new_year, "{query}");
        }
        for query in [
            "",
            "se=2026-11-20",
            "Expires=1795176000",
            "X-Amz-Date=20261120T110000Z",
            "X-Amz-Date=x&X-Amz-Expires=3600",
            "X-Amz-Date=20261120T110000Z&X-Amz-Expires=-1",
            "Expires=99999999999999&Signature=x",
            "Expires=1&Expires=2&Signature=x",
            "temp_url_expires=1830297600",
            "x-oss-date=20271231T000000Z&x-oss-expires=x",
            "q-sign-time=1&q-signature=a",
            "Policy=bm9uZQ__&Signature=x&Key-Pair-Id=K",
            "token=a.b.c",
            "exp=1830297600",
        ] {
            assert_eq!(expiry(query), None, "{query}");
        }
    }

    #[test]
    fn checks_new_links() {
        for text in ["https://h/p?q=1", "https://user:pass@h/p", "https://h", "https://h/a%20b"] {
            assert!(check(text).is_ok(), "{text}");
        }
        for (text, code) in [
            ("http://h/p", FieldCode::NotAllowed),
            ("ftp://h/p", FieldCode::Malformed),
            ("h/p", FieldCode::Malformed),
            ("https:///p", FieldCode::Malformed),
            ("https://h/p#x", FieldCode::Malformed),
            ("https://h/a b", FieldCode::Malformed),
            ("https://h/?sig=REDACTED", FieldCode::Masked),
            ("https://h/?a=***", FieldCode::Masked),
            ("https://h/?sig=%3Cyour-signature%3E", FieldCode::Placeholder),
        ] {
            assert_eq!(check(text).err().map(|violation| violation.code), Some(code), "{text}");
        }
    }
}
