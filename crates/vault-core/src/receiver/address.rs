//! URLs of webhooks.

use crate::field::{FieldCode, FieldError};
use crate::strict_url;
use std::fmt;
use url::Host;

/// Maximum length of a webhook's URL, in bytes.
pub const MAX_ADDRESS_LENGTH: usize = 2_048;

/// URL of a webhook. Its path may be a secret, so only the masked form is shown.
#[derive(Clone)]
pub struct Url {
    text: String,
    masked: String,
    host: String,
    port: u16,
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Url").field(&self.masked).finish()
    }
}

impl Url {
    /// Returns the URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URL with only its host, because path and query are secrets of many services.
    pub fn masked(&self) -> &str {
        &self.masked
    }

    /// Returns the host: a name in lower-case A-labels, or an IP address, with brackets around an IPv6 address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// Validates the URL of a webhook, which must be `https`, or `http` to the loopback address.
///
/// # Errors
/// [`FieldCode::TooLong`], [`FieldCode::Malformed`] or [`FieldCode::NotAllowed`].
pub fn check_url(text: &str, pointer: &str) -> Result<Url, FieldError> {
    let violation = |code, detail: &str| Err(FieldError::new(pointer, code, detail.to_owned()));
    if text.len() > MAX_ADDRESS_LENGTH {
        return violation(FieldCode::TooLong, "must be at most 2,048 bytes");
    }
    let Some(url) = strict_url::parse(text) else {
        let detail = "must be a URL such as https://hooks.example.com/orgvault: with a host, and without spaces, invisible \
                      characters or port 0";
        return violation(FieldCode::Malformed, detail);
    };
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return violation(FieldCode::NotAllowed, "must be a URL without user and fragment");
    }
    let Some(host) = url.host() else {
        return violation(FieldCode::Malformed, "must be a URL with a host");
    };
    let is_local = match &host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    match url.scheme() {
        "https" => {}
        "http" if is_local => {}
        "http" => return violation(FieldCode::NotAllowed, "must be https: over http, anybody in between can read it"),
        _ => return violation(FieldCode::NotAllowed, "must be https"),
    }
    let rest = if url.path() == "/" && url.query().is_none() { "/" } else { "/…" };
    let masked = format!("{}{rest}", url.origin().ascii_serialization());
    // Both schemes have a default port.
    let port = url.port_or_known_default().unwrap_or_default();
    Ok(Url { host: host.to_string(), port, masked, text: url.into() })
}
