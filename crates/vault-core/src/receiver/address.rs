//! The addresses of webhooks.

use crate::field::{FieldCode, FieldError};
use std::fmt;
use std::net::IpAddr;
use url::{Host, Url as Parsed};

/// The longest URL of a webhook, in bytes.
pub const MAX_ADDRESS_LENGTH: usize = 2_048;

/// The URL of a webhook. Its path may be a secret: only the masked form is shown.
#[derive(Clone)]
pub struct Url {
    text: String,
    masked: String,
    host: Host,
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Url").field(&self.masked).finish()
    }
}

impl Url {
    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL with its host alone: path and query of many services are what lets one in.
    pub fn masked(&self) -> &str {
        &self.masked
    }

    /// The address in place of a host name, if there is one.
    pub const fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        }
    }
}

/// Judges the URL of a webhook: https, or http on this machine alone.
///
/// # Errors
/// [`FieldCode::TooLong`], [`FieldCode::Malformed`], [`FieldCode::NotAllowed`].
pub fn check_url(text: &str, pointer: &str) -> Result<Url, FieldError> {
    let flaw = |code, detail: &str| Err(FieldError::new(pointer, code, detail.to_owned()));
    if text.len() > MAX_ADDRESS_LENGTH {
        return flaw(FieldCode::TooLong, "must be at most 2,048 bytes");
    }
    let Ok(url) = Parsed::parse(text) else {
        return flaw(FieldCode::Malformed, "must be a URL, such as https://hooks.example.com/orgvault");
    };
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return flaw(FieldCode::NotAllowed, "must be a URL without user and fragment");
    }
    let Some(host) = url.host() else {
        return flaw(FieldCode::Malformed, "must be a URL with a host");
    };
    let is_local = match &host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    match url.scheme() {
        "https" => {}
        "http" if is_local => {}
        "http" => return flaw(FieldCode::NotAllowed, "must be https: over http, anybody in between can read it"),
        _ => return flaw(FieldCode::NotAllowed, "must be https"),
    }
    let rest = if url.path() == "/" && url.query().is_none() { "/" } else { "/…" };
    let masked = format!("{}{rest}", url.origin().ascii_serialization());
    Ok(Url { host: host.to_owned(), masked, text: url.into() })
}
