//! Common formats of texts.

use url::Url;

/// Returns whether `text` consists of 1 to `max` ASCII letters, digits and bytes of `others`.
pub(super) fn is_token(text: &str, max: usize, others: &[u8]) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

/// Returns whether `text` is a domain name with at least two labels, in lower case.
pub(super) fn is_domain(text: &str) -> bool {
    text.len() <= 253
        && text.contains('.')
        && text.split('.').all(|label| {
            is_token(label, 63, b"-")
                && !label.bytes().any(|byte| byte.is_ascii_uppercase())
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// Parses the URL in `text`. Returns `None` if different parsers could read different hosts.
pub(super) fn web_address(text: &str) -> Option<(&'static str, Url)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" => "https",
        "http" => "http",
        _ => return None,
    };
    // The parser accepts all of these, but other programs that read the URL refuse them or read them differently.
    if rest.starts_with('/') || text.contains('\\') || text.contains(char::is_whitespace) {
        return None;
    }
    let url = Url::parse(text).ok()?;
    url.has_host().then_some((scheme, url))
}
