//! The policy for outgoing connections.
//!
//! Users who save credentials choose the hosts in them. Therefore, the policy checks the address of the connection
//! rather than a name. It denies all addresses that are not public: the special-purpose registries of IANA (RFC 6890),
//! which include the metadata services of clouds, and all IPv6 addresses that contain an IPv4 address.
//!
//! Behind a proxy, the proxy resolves names. The policy then permits only some names, and checks addresses that are used
//! instead of names.

mod name;
mod route;

pub use name::{HostPattern, InvalidHostPattern};
pub use route::{Destination, Egress, InvalidDestination};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The permitted destination addresses: public ones, and the networks that the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    allowed: Vec<IpNet>,
    listeners: Vec<SocketAddr>,
}

impl EgressPolicy {
    /// Permits only public addresses.
    pub const fn public_only() -> Self {
        Self { allowed: Vec::new(), listeners: Vec::new() }
    }

    /// Permits public addresses and those of `networks`.
    pub const fn allowing(networks: Vec<IpNet>) -> Self {
        Self { allowed: networks, listeners: Vec::new() }
    }

    /// Permits every address.
    pub(crate) fn everywhere() -> Self {
        Self::allowing(vec![
            IpNet::new_assert(Ipv4Addr::UNSPECIFIED.into(), 0),
            IpNet::new_assert(Ipv6Addr::UNSPECIFIED.into(), 0),
        ])
    }

    /// Denies the server's own listeners, so that a saved endpoint cannot make the server send requests to itself. A
    /// listener on the unspecified address (`0.0.0.0`, `::`) denies its port on every address that is not public, and on
    /// the public addresses of this host.
    #[must_use]
    pub fn without_listeners(mut self, listeners: Vec<SocketAddr>) -> Self {
        self.listeners = listeners;
        self
    }

    /// Returns whether connections to `address` are permitted.
    pub fn permits(&self, address: IpAddr) -> bool {
        is_public(address) || self.allowed.iter().any(|network| network.contains(&address))
    }

    /// Returns whether connections to `address` and its port are permitted.
    pub fn permits_connection(&self, address: SocketAddr) -> bool {
        let is_own = |listener: &SocketAddr| {
            let same_host = || match listener.ip().is_unspecified() {
                true => !is_public(address.ip()) || is_of_this_host(address.ip()),
                false => listener.ip().to_canonical() == address.ip().to_canonical(),
            };
            listener.port() == address.port() && same_host()
        };
        self.permits(address.ip()) && !self.listeners.iter().any(is_own)
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

/// IPv4 networks that are not public.
const CLOSED_V4: [Ipv4Net; 17] = [
    v4(0, 0, 0, 0, 8),        // this network, the unspecified address
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // shared between a carrier's customers; metadata of Alibaba
    v4(127, 0, 0, 0, 8),      // loopback
    v4(168, 63, 129, 16, 32), // the host's own services in Azure
    v4(169, 254, 0, 0, 16),   // link-local; metadata of Amazon, Google, Azure and others
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments; metadata of Oracle
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 88, 99, 0, 24),   // relays of 6to4
    v4(192, 168, 0, 0, 16),   // private
    v4(198, 18, 0, 0, 15),    // benchmarks
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 5),      // reserved
    v4(248, 0, 0, 0, 5),      // reserved, and broadcast
];

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// The IPv6 network of global unicast addresses. Other addresses are loopback, unspecified, mapped, compatible and
/// translated forms of IPv4 (`::ffff:0:0/96`, `::/96`, `64:ff9b::/96`), unique local (`fd00:ec2::254` of Amazon),
/// link-local, site-local and multicast addresses.
const OPEN_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Networks in [`OPEN_V6`] that are not public.
const CLOSED_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments; Teredo, which carries IPv4
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x2002, 0, 16),     // 6to4, which carries IPv4
    v6(0x3fff, 0, 20),     // documentation
];

/// Returns whether an interface of this host has the address. Only then can a socket be bound to it.
fn is_of_this_host(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns whether `address` is public.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            OPEN_V6.contains(&address) && !CLOSED_V6.iter().any(|network| network.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn own_listeners_are_refused_at_their_port_only() {
        let socket = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let loopback = || EgressPolicy::allowing(vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        let policy = loopback().without_listeners(vec![socket("127.0.0.1:8080"), socket("[::]:9000")]);
        for refused in ["127.0.0.1:8080", "127.0.0.1:9000", "127.0.0.2:9000", "[::1]:9000"] {
            assert!(loopback().permits_connection(socket(refused)), "{refused}");
            assert!(!policy.permits_connection(socket(refused)), "{refused}");
        }
        for permitted in ["127.0.0.1:5000", "127.0.0.2:8080", "[::1]:8080", "1.1.1.1:9000"] {
            assert!(policy.permits_connection(socket(permitted)), "{permitted}");
        }
        assert!(is_of_this_host(ip("127.0.0.1")) && !is_of_this_host(ip("1.1.1.1")));
    }

    #[test]
    fn non_public_addresses_are_refused() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "fd00:ec2::254",
            "fc00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(!EgressPolicy::public_only().permits(ip(text)), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_permitted() {
        for text in [
            "8.8.8.8",
            "1.1.1.1",
            "52.216.0.1",
            "20.60.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "223.255.255.255",
            "168.63.129.15",
            "2600:1f18::1",
            "2a00:1450:4001::5e",
            "2001:4860:4860::8888",
        ] {
            assert!(EgressPolicy::public_only().permits(ip(text)), "{text}");
        }
    }

    /// Returns whether the standard library classifies the address as special.
    fn is_special(address: Ipv4Addr) -> bool {
        address.is_unspecified()
            || address.is_loopback()
            || address.is_private()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_documentation()
    }

    proptest! {
        #[test]
        fn special_addresses_are_refused(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            if is_special(address) {
                prop_assert!(!EgressPolicy::public_only().permits(address.into()));
            }
        }

        /// No IPv6 address that contains an IPv4 address is permitted, because a client could use the IPv4 address
        /// instead.
        #[test]
        fn ipv6_forms_of_ipv4_addresses_are_refused(bits: u32) {
            let (high, low) = ((bits >> 16) as u16, (bits & 0xffff) as u16);
            for address in [
                Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low),
            ] {
                prop_assert!(!EgressPolicy::public_only().permits(address.into()), "{address}");
            }
        }

        #[test]
        fn only_global_unicast_ipv6_is_permitted(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            if EgressPolicy::public_only().permits(address.into()) {
                prop_assert_eq!(bits >> 125, 1);
            }
        }

        /// An allowed network permits its own addresses and no others.
        #[test]
        fn only_allowed_destinations_are_permitted(bits: u32, length in 0_u8..=32, other: u32) {
            let network = Ipv4Net::new(Ipv4Addr::from_bits(bits), length).unwrap();
            let policy = EgressPolicy::allowing(vec![network.into()]);
            prop_assert!(policy.permits(Ipv4Addr::from_bits(bits).into()));
            let other = Ipv4Addr::from_bits(other);
            let expected = network.contains(&other) || EgressPolicy::public_only().permits(other.into());
            prop_assert_eq!(policy.permits(other.into()), expected);
        }
    }
}
