//! Parsers of settings and flags. Errors do not repeat the value, which may contain a password.

use clap::ValueEnum;
use ipnet::IpNet;
use secrecy::SecretString;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use url::{Host, Url};
use vault_client::BaseUrl;
use vault_http::Rate;
use vault_storage::{Destination, HostPattern};

/// Parses an IP address or `localhost`, and a port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .or_else(|_| text.replacen("localhost:", "127.0.0.1:", 1).parse())
        .map_err(|_| "must be an IP address (or localhost) and a port, such as 127.0.0.1:8080".to_owned())
}

/// Parses an address. Empty text means that the listener is disabled.
pub(super) fn address_or_off(text: &str) -> Result<Option<SocketAddr>, String> {
    if text.is_empty() { Ok(None) } else { address(text).map(Some) }
}

/// Parses a network or a single address.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "must be a network such as 10.0.0.0/8, or one IP address".to_owned())
}

/// Parses a host name.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    match Host::parse(text) {
        Ok(Host::Domain(name)) => Ok(name),
        _ => Err("must be a host name without scheme and port, such as vault.example.com".to_owned()),
    }
}

/// Parses a network, or a pattern of host names that users may name behind a proxy.
pub(super) fn permitted(text: &str) -> Result<Destination, String> {
    if let Ok(network) = network(text) {
        return Ok(Destination::Network(network));
    }
    match text.parse::<HostPattern>() {
        Ok(pattern) if pattern.is_local_wildcard() => {
            Err("must be a whole name: wildcards match no local names".to_owned())
        }
        Ok(pattern) => Ok(Destination::Name(pattern)),
        Err(_) => Err("must be a network such as 10.0.0.0/8, a host name, *.SUFFIX or *".to_owned()),
    }
}

/// Parses a secret.
pub(super) fn secret(text: &str) -> Result<SecretString, String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.into()) }
}

/// Returns a parser for an integer from `least` to `most`.
pub(crate) fn whole<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Copy + fmt::Display,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("must be a whole number from {least} to {most}"))
    }
}

/// The origin (scheme, host and port) at which clients reach the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicUrl(Url);

impl PublicUrl {
    /// Returns the host. IPv6 addresses are in brackets.
    pub(super) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns whether the URL points to this host.
    pub(crate) fn is_local(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let flawed = || "must be an http or https URL with a host and without path, such as https://vault.example.com";
        let url = Url::parse(text).map_err(|_| flawed())?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let anonymous = url.username().is_empty() && url.password().is_none();
        if !matches!(url.scheme(), "http" | "https") || !bare || !anonymous {
            return Err(flawed().to_owned());
        }
        Ok(Self(url))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}

/// The role of a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    All,
    Api,
    Activation,
}

impl Role {
    /// Returns whether this role serves the HTTP API.
    pub(crate) fn serves_api(self) -> bool {
        self != Self::Activation
    }
}

/// The value of `--activation-listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ActivationPlace {
    Off,
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// Parses a path, relative to the working directory.
pub(super) fn absolute_path(text: &str) -> Result<PathBuf, &'static str> {
    std::path::absolute(text).map_err(|_| "must be a path")
}

impl FromStr for ActivationPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            _ if text.is_empty() => Ok(Self::Off),
            Some(path) => std::path::absolute(path)
                .map(Self::Unix)
                .map_err(|_| "unix: needs a path, such as unix:/run/orgvault/activation.sock".to_owned()),
            None => address(text).map(Self::Tcp).map_err(|_| {
                "must be unix:/PATH, or an IP address (or localhost) and a port, such as 127.0.0.1:8444".to_owned()
            }),
        }
    }
}

/// The value of `--otlp-endpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collector(String);

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = text.trim_end_matches('/');
        match url.parse::<BaseUrl>() {
            Ok(_) => Ok(Self(url.to_owned())),
            Err(_) => Err("must be an http or https URL without user, query and fragment".to_owned()),
        }
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of `--audit-sink`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SinkTarget {
    File(PathBuf),
    /// Path of the local syslog socket.
    Syslog(PathBuf),
    Http(String),
}

impl FromStr for SinkTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let place = match text.split_once(':') {
            Some(("file", file)) => path(file).map(Self::File),
            Some(("syslog", socket)) => path(socket).map(Self::Syslog),
            Some(("http" | "https", _)) => text.parse::<BaseUrl>().ok().map(|_| Self::Http(text.to_owned())),
            None if text == "syslog" => Some(Self::Syslog("/dev/log".into())),
            _ => None,
        };
        place.ok_or_else(|| {
            "must be file:/PATH, syslog, syslog:/PATH of its socket, or an http or https URL without user, query and fragment"
                .to_owned()
        })
    }
}

impl fmt::Display for SinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Syslog(path) => write!(f, "syslog:{}", path.display()),
            Self::Http(url) => f.write_str(url),
        }
    }
}

/// Creates a rate limit with a burst of ten times the rate, or `None` if `per_second` is 0.
pub(super) fn rate(per_second: u32) -> Option<Rate> {
    Some(Rate { per_second: NonZeroU32::new(per_second)?, burst: NonZeroU32::new(per_second.saturating_mul(10))? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        for text in ["127.0.0.1:8080", "localhost:8080"] {
            assert_eq!(address(text), Ok(([127, 0, 0, 1], 8080).into()), "{text}");
        }
        for text in ["", "foo", "foo:80", "127.0.0.1", "8080", ":8080"] {
            assert!(address(text).is_err_and(|violation| violation.contains("localhost")), "{text}");
        }
        assert_eq!(address_or_off(""), Ok(None));
    }

    #[test]
    fn network_may_be_one_address() {
        assert_eq!(network("127.0.0.1"), network("127.0.0.1/32"));
        assert_eq!(network("::1"), network("::1/128"));
        for text in ["", "10.0.0.0/33", "example.com", "10.0.0"] {
            assert!(network(text).is_err_and(|violation| violation.contains("10.0.0.0/8")), "{text}");
        }
    }

    #[test]
    fn public_url_has_no_path() {
        let shown = |text: &str| text.parse::<PublicUrl>().map(|url| url.to_string());
        for text in ["https://vault.example.com", "https://vault.example.com/", "https://VAULT.example.com:443"] {
            assert_eq!(shown(text).as_deref(), Ok("https://vault.example.com"), "{text}");
        }
        assert_eq!(shown("http://10.0.0.1:8080").as_deref(), Ok("http://10.0.0.1:8080"));
        for text in [
            "",
            "vault.example.com",
            "https://vault.example.com/v1",
            "https://vault.example.com?a",
            "https://vault.example.com#a",
            "https://ada:h7Qz@vault.example.com",
            "ftp://vault.example.com",
            "unix:/run/orgvault",
        ] {
            assert!(shown(text).is_err_and(|violation| !violation.contains("h7Qz")), "{text}");
        }
    }
}
