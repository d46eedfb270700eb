//! Network of a request, coarse enough to remain the same when the address changes.

use std::fmt;
use std::net::IpAddr;

/// An IPv4 /24 or an IPv6 /56.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// The first three bytes of an IPv4 address.
    V4([u8; 3]),
    /// The first seven bytes of an IPv6 address.
    V6([u8; 7]),
}

impl Network {
    /// Returns the network of `address`. IPv4-mapped IPv6 addresses count as IPv4.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, ..] = v6.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        }
    }

    /// Returns the bytes of the network. Their number depends on the address family.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4([a, b, c]) => write!(f, "{a}.{b}.{c}.0/24"),
            Self::V6([a, b, c, d, e, g, h]) => {
                write!(f, "{a:02x}{b:02x}:{c:02x}{d:02x}:{e:02x}{g:02x}:{h:02x}00::/56")
            }
        }
    }
}
