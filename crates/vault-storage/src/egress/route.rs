//! Routes of outgoing connections: directly or through a proxy, and whether the destination is permitted there.

use super::EgressPolicy;
use super::name::{Host, HostPattern, is_local, permits_name};
use crate::guard::{Proxy, TrustError, certificates_in};
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use vault_core::check::CheckReason;

/// Hosts in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Addresses of this network. A direct one matches only addresses in URLs, because names are not resolved before
    /// the route is chosen.
    Network(IpNet),
    /// Host names.
    Name(HostPattern),
}

/// An error in a direct destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a host name, *.SUFFIX, or a network such as 10.0.0.0/8")]
pub struct InvalidDestination;

impl FromStr for Destination {
    type Err = InvalidDestination;

    fn from_str(text: &str) -> Result<Self, InvalidDestination> {
        let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        match (network, text.parse()) {
            (Some(network), _) => Ok(Self::Network(network)),
            (None, Ok(HostPattern::Any) | Err(_)) => Err(InvalidDestination),
            (None, Ok(pattern)) => Ok(Self::Name(pattern)),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Name(pattern) => pattern.fmt(f),
        }
    }
}

/// The route to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Direct,
    Proxied,
}

/// Returns the route to `host` if a proxy is set. Loopback is always direct, because the proxy's loopback is another one.
pub(crate) fn route(host: &Host, direct: &[Destination]) -> Route {
    let is_direct = match host {
        Host::Address(address) => {
            address.to_canonical().is_loopback()
                || direct
                    .iter()
                    .any(|entry| matches!(entry, Destination::Network(network) if network.contains(address)))
        }
        Host::Name(name) => {
            name == "localhost"
                || direct.iter().any(|entry| matches!(entry, Destination::Name(pattern) if pattern.matches(name)))
        }
    };
    if is_direct { Route::Direct } else { Route::Proxied }
}

/// Outgoing connections: their proxy, if any, the destinations that users may choose, and the trusted CAs.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    policy: EgressPolicy,
    proxied: Option<Arc<Proxied>>,
    chosen_by: ChosenBy,
    authorities: Arc<[CertificateDer<'static>]>,
}

#[derive(Debug)]
struct Proxied {
    proxy: Proxy,
    direct: Vec<Destination>,
    allowed: Vec<HostPattern>,
}

/// The party that chooses a destination, which determines the permitted names behind a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChosenBy {
    /// A user: the names of the settings.
    #[default]
    User,
    /// A server on the Internet: every name without a special or local use.
    PublicHost,
    /// The operator: every name.
    Operator,
}

impl From<EgressPolicy> for Egress {
    /// Connects directly to the addresses that `policy` permits.
    fn from(policy: EgressPolicy) -> Self {
        Self { policy, ..Self::default() }
    }
}

impl Egress {
    /// Connects through `proxy`, except to loopback and to `direct`. Behind the proxy, users may choose public
    /// addresses, the services of the supported clouds and the names in `allowed`.
    pub fn through(proxy: Proxy, direct: Vec<Destination>, allowed: Vec<HostPattern>) -> Self {
        Self { proxied: Some(Arc::new(Proxied { proxy, direct, allowed })), ..Self::default() }
    }

    /// Also trusts the CA certificates in `ca_file` (PEM), besides those of the system.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn trusting(self, ca_file: Option<&Path>) -> Result<Self, TrustError> {
        let authorities = ca_file.map(certificates_in).transpose()?.unwrap_or_default().into();
        Ok(Self { authorities, ..self })
    }

    /// Returns the additional CA certificates.
    pub(crate) fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }

    /// Returns the same routes with other permitted addresses.
    #[must_use]
    pub fn with_policy(&self, policy: EgressPolicy) -> Self {
        Self { policy, ..self.clone() }
    }

    /// Returns the proxy.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxied.as_deref().map(|proxied| &proxied.proxy)
    }

    /// Returns the same routes to destinations that only the operator chooses, which are all permitted.
    pub(crate) fn for_operator(&self) -> Self {
        Self { chosen_by: ChosenBy::Operator, ..self.with_policy(EgressPolicy::everywhere()) }
    }

    /// Returns the same routes to destinations that a server on the Internet chooses: public addresses and names.
    pub(crate) fn for_public_host(&self) -> Self {
        Self { chosen_by: ChosenBy::PublicHost, ..self.with_policy(EgressPolicy::public_only()) }
    }

    pub(crate) const fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Returns the proxy for a destination, or `None` if the connection is direct. The addresses of a direct
    /// destination are not checked here.
    ///
    /// # Errors
    /// [`CheckReason::BlockedEgress`] if the proxied destination is not permitted.
    pub(crate) fn proxy_to(&self, host: &str, port: u16) -> Result<Option<&Proxy>, CheckReason> {
        let Some(proxied) = self.proxied.as_deref() else { return Ok(None) };
        let host = Host::parse(host).ok_or(CheckReason::BlockedEgress)?;
        if route(&host, &proxied.direct) == Route::Direct {
            return Ok(None);
        }
        let is_permitted = match &host {
            Host::Address(address) => self.policy.permits_connection(SocketAddr::new(*address, port)),
            Host::Name(name) => match self.chosen_by {
                ChosenBy::User => permits_name(name, &proxied.allowed),
                ChosenBy::PublicHost => !is_local(name),
                ChosenBy::Operator => true,
            },
        };
        if is_permitted { Ok(Some(&proxied.proxy)) } else { Err(CheckReason::BlockedEgress) }
    }

    /// Returns whether connections to the host may be permitted. The addresses of a name are checked only when it is
    /// resolved.
    pub(crate) fn may_permit(&self, host: &str, port: u16) -> bool {
        match (self.proxy_to(host, port), Host::parse(host)) {
            (Ok(None), Some(Host::Address(address))) => self.policy.permits(address),
            (found, _) => found.is_ok(),
        }
    }

    /// Returns whether a proxied host is public, as far as its name or address shows. `None` for a direct host.
    pub(crate) fn is_public_if_proxied(&self, host: &str) -> Option<bool> {
        let proxied = self.proxied.as_deref()?;
        match Host::parse(host)? {
            host if route(&host, &proxied.direct) == Route::Direct => None,
            Host::Address(address) => Some(EgressPolicy::public_only().permits(address)),
            Host::Name(name) => Some(!is_local(&name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn egress(direct: &[&str], allowed: &[&str]) -> Egress {
        let proxy = Proxy::new("http://proxy.example:3128".parse().unwrap(), None).unwrap();
        let direct = direct.iter().map(|entry| entry.parse().unwrap()).collect();
        Egress::through(proxy, direct, allowed.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    /// Returns the route of a destination, or `None` if it is blocked.
    fn to(egress: &Egress, host: &str) -> Option<Route> {
        let found = egress.proxy_to(host, 443).ok()?;
        Some(if found.is_some() { Route::Proxied } else { Route::Direct })
    }

    #[test]
    fn destination_is_direct_proxied_or_blocked() {
        let egress = egress(&["minio.example", "*.corp.example", "10.1.0.0/16"], &["*.example", "store.internal"]);
        for (host, expected) in [
            ("localhost", Some(Route::Direct)),
            ("LOCALHOST.", Some(Route::Direct)),
            ("127.0.0.9", Some(Route::Direct)),
            ("[::1]", Some(Route::Direct)),
            ("::ffff:127.0.0.1", Some(Route::Direct)),
            ("minio.example", Some(Route::Direct)),
            ("a.corp.example", Some(Route::Direct)),
            ("10.1.2.3", Some(Route::Direct)),
            ("corp.example", Some(Route::Proxied)),
            ("store.internal", Some(Route::Proxied)),
            ("s3.amazonaws.com", Some(Route::Proxied)),
            ("1.1.1.1", Some(Route::Proxied)),
            ("[2600:1f18::1]", Some(Route::Proxied)),
            ("10.2.0.1", None),
            ("169.254.169.254", None),
            ("metadata.google.internal", None),
            ("a.localhost", None),
            ("127.1", None),
            ("0x7f.1", None),
            ("other.com", None),
        ] {
            assert_eq!(to(&egress, host), expected, "{host}");
        }
        let operator = egress.for_operator();
        for host in ["10.2.0.1", "other.com", "kms.corp", "metadata.google.internal"] {
            assert_eq!(to(&operator, host), Some(Route::Proxied), "{host}");
        }
        assert_eq!(to(&operator, "127.1"), None);
        let public = egress.for_public_host();
        for (host, expected) in [("other.com", Some(Route::Proxied)), ("a.internal", None), ("10.2.0.1", None)] {
            assert_eq!(to(&public, host), expected, "{host}");
        }
    }

    #[test]
    fn proxy_does_not_reach_own_listeners() {
        let own = SocketAddr::from(([1, 1, 1, 1], 443));
        let egress = egress(&[], &[]).with_policy(EgressPolicy::public_only().without_listeners(vec![own]));
        assert_eq!(to(&egress, "1.1.1.1"), None);
        assert_eq!(to(&egress, "1.1.1.2"), Some(Route::Proxied));
    }

    #[test]
    fn direct_hosts_are_names_suffixes_and_networks() {
        for text in ["minio.example", "*.corp", "10.0.0.0/8", "fd00::/8"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1".parse::<Destination>().unwrap().to_string(), "10.0.0.1/32");
        for text in ["", "*", "http://a.example", "a.example:80", "10.0.0.0/33"] {
            assert_eq!(text.parse::<Destination>(), Err(InvalidDestination), "{text}");
        }
    }

    fn address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
            any::<u8>().prop_map(|last| Ipv4Addr::new(127, 0, 0, last).into()),
            any::<u8>().prop_map(|last| Ipv4Addr::new(10, 0, 0, last).into()),
            any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
            any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().into()),
            Just(Ipv6Addr::LOCALHOST.into()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// No refused address is sent to the proxy, and loopback is never proxied.
        #[test]
        fn only_permitted_addresses_are_proxied(address in address(), length in 0_u8..=32, bits: u32) {
            let network = IpNet::V4(ipnet::Ipv4Net::new(Ipv4Addr::from_bits(bits), length).unwrap());
            let egress = egress(&[], &["*"]).with_policy(EgressPolicy::public_only());
            let is_loopback = match address {
                IpAddr::V4(address) => address.octets()[0] == 127,
                IpAddr::V6(address) => {
                    address == Ipv6Addr::LOCALHOST || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
                }
            };
            let expected = match (is_loopback, EgressPolicy::public_only().permits(address)) {
                (true, _) => Some(Route::Direct),
                (false, true) => Some(Route::Proxied),
                (false, false) => None,
            };
            prop_assert_eq!(to(&egress, &address.to_string()), expected);
            let entry = [Destination::Network(network)];
            let is_direct = is_loopback || network.contains(&address);
            prop_assert_eq!(route(&Host::Address(address), &entry) == Route::Direct, is_direct);
        }

        /// Without an entry that equals it, no local name is sent to the proxy.
        #[test]
        fn no_local_name_is_proxied(
            labels in proptest::collection::vec("[a-z]{1,3}", 0..3),
            last in prop_oneof![Just("internal"), Just("local"), Just("corp"), Just("localhost"), Just("host")]
        ) {
            let name = [&labels.iter().map(String::as_str).collect::<Vec<_>>()[..], &[last]].concat().join(".");
            let found = to(&egress(&[], &["*"]), &name);
            if last != "host" || labels.is_empty() {
                prop_assert!(found == if name == "localhost" { Some(Route::Direct) } else { None }, "{}", name);
            } else {
                prop_assert_eq!(found, Some(Route::Proxied));
            }
        }
    }
}
