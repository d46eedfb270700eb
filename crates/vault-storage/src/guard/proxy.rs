//! The outgoing proxy: its address, its credentials and its state.

use super::{TrustError, ca_certificates, certificates_in};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use url::{Host, Url};
use vault_core::check::CheckReason;
use zeroize::Zeroizing;

/// The address of a proxy: `http://HOST[:PORT]` or `https://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    url: Url,
    host: String,
    port: u16,
}

/// An error in the address of a proxy. It does not repeat the text, which may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be http://HOST[:PORT] or https://HOST[:PORT], without user, path and query")]
pub struct InvalidProxyUrl;

impl ProxyUrl {
    /// Returns whether the connection to the proxy is encrypted.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns whether the connection to the proxy does not leave this host.
    pub fn is_local(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }
}

impl FromStr for ProxyUrl {
    type Err = InvalidProxyUrl;

    fn from_str(text: &str) -> Result<Self, InvalidProxyUrl> {
        let url = Url::parse(text).map_err(|_| InvalidProxyUrl)?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !matches!(url.scheme(), "http" | "https") || !is_bare || has_user {
            return Err(InvalidProxyUrl);
        }
        let host = match url.host().ok_or(InvalidProxyUrl)? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(InvalidProxyUrl)?;
        Ok(Self { url, host, port })
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url.origin().ascii_serialization())
    }
}

/// Receives the reason of each failure that the proxy causes.
type OnFailure = Box<dyn Fn(CheckReason) + Send + Sync>;

/// An outgoing HTTP proxy with `CONNECT`.
pub struct Proxy {
    url: ProxyUrl,
    tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    authorization: Option<HeaderValue>,
    on_failure: Option<OnFailure>,
    is_failing: AtomicBool,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.url)
    }
}

impl Proxy {
    /// Creates a proxy. An `https` proxy must have a certificate that the system's CA certificates or those in
    /// `ca_file` verify.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn new(url: ProxyUrl, ca_file: Option<&Path>) -> Result<Self, TrustError> {
        let name = ServerName::try_from(url.host.clone()).ok().filter(|_| url.is_https());
        let tls = name
            .map(|name| {
                Ok::<_, TrustError>((
                    name,
                    ca_certificates::tls(ca_file.map(certificates_in).transpose()?.unwrap_or_default())?,
                ))
            })
            .transpose()?;
        Ok(Self { url, tls, authorization: None, on_failure: None, is_failing: AtomicBool::new(false) })
    }

    /// Authenticates with `USER:PASSWORD` (Basic, RFC 7617). Returns `None` if the text has no colon, or contains
    /// control characters.
    pub fn with_credentials(self, credentials: &str) -> Option<Self> {
        if !credentials.contains(':') || credentials.chars().any(char::is_control) {
            return None;
        }
        let encoded = Zeroizing::new(format!("Basic {}", STANDARD.encode(credentials))); // sent to the proxy
        let mut value = HeaderValue::from_str(&encoded).ok()?;
        value.set_sensitive(true);
        Some(Self { authorization: Some(value), ..self })
    }

    /// Calls `on_failure` for each failure that the proxy causes.
    #[must_use]
    pub fn on_failure(self, on_failure: impl Fn(CheckReason) + Send + Sync + 'static) -> Self {
        Self { on_failure: Some(Box::new(on_failure)), ..self }
    }

    /// Returns the address of the proxy.
    pub const fn url(&self) -> &ProxyUrl {
        &self.url
    }

    pub(super) fn host(&self) -> &str {
        &self.url.host
    }

    pub(super) const fn port(&self) -> u16 {
        self.url.port
    }

    pub(super) const fn tls(&self) -> Option<&(ServerName<'static>, Arc<ClientConfig>)> {
        self.tls.as_ref()
    }

    pub(super) const fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Records the outcome of a tunnel. The log contains the first failure after a success, and the first success after
    /// a failure. A proxy that only refuses a destination works.
    pub(super) fn record(&self, outcome: Result<(), CheckReason>) {
        let is_failing = matches!(outcome, Err(CheckReason::ProxyUnreachable | CheckReason::ProxyCredentials));
        let was_failing = self.is_failing.swap(is_failing, Ordering::Relaxed);
        let proxy = &self.url;
        match outcome {
            Err(reason) if is_failing && !was_failing => {
                tracing::warn!(%proxy, %reason, "the outgoing proxy fails. {}", reason.remedy());
            }
            _ if was_failing && !is_failing => tracing::info!(%proxy, "the outgoing proxy works again"),
            _ => {}
        }
        let caused = outcome.err().filter(|reason| is_failing || *reason == CheckReason::ProxyRefused);
        if let (Some(reason), Some(on_failure)) = (caused, &self.on_failure) {
            on_failure(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_is_a_host_with_an_optional_port() {
        for (text, shown, host, port) in [
            ("http://proxy.example:3128", "http://proxy.example:3128", "proxy.example", 3128),
            ("http://proxy.example/", "http://proxy.example", "proxy.example", 80),
            ("https://[::1]", "https://[::1]", "::1", 443),
        ] {
            let url: ProxyUrl = text.parse().unwrap();
            assert_eq!((url.to_string().as_str(), url.host.as_str(), url.port), (shown, host, port), "{text}");
        }
        for text in [
            "",
            "proxy.example:3128",
            "socks5://proxy.example",
            "http://",
            "http://u:p@proxy.example",
            "http://proxy.example/a",
            "http://proxy.example?a",
            "http://proxy.example#a",
            "http://proxy.example:0",
        ] {
            assert_eq!(text.parse::<ProxyUrl>(), Err(InvalidProxyUrl), "{text}");
        }
    }

    #[test]
    fn credentials_are_one_line_and_not_shown() {
        let proxy = || Proxy::new("http://proxy.example".parse().unwrap(), None).unwrap();
        let found = proxy().with_credentials("Aladdin:open sesame").unwrap();
        assert_eq!(found.authorization.as_ref().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let shown = format!("{found:?} {:?}", found.authorization);
        assert!(!shown.contains("sesame") && !shown.contains("QWxh"), "{shown}");
        for text in ["", "user", "a:b\nc:d", "a:\0"] {
            assert!(proxy().with_credentials(text).is_none(), "{text:?}");
        }
    }
}
