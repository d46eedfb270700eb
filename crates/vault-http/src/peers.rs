//! Connection limits per host and network.

use crate::forwarded::is_among;
use crate::settings::ListenerSettings;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections per host and network for all workers.
pub(crate) struct Peers {
    per_host: usize,
    per_network: usize,
    trusted: Vec<IpNet>,
    proxies_only: bool,
    counts: Mutex<HashMap<Peer, usize>>,
}

/// The key of a connection count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Peer {
    /// An IPv4 address.
    Host4([u8; 4]),
    /// An IPv6 /64, because one host can use all of its addresses.
    Host6([u16; 4]),
    /// A user of this host, for connections to a Unix socket.
    User(u32),
    /// An IPv4 /24.
    Network4([u8; 3]),
    /// An IPv6 /48, the usual size of a site.
    Network6([u16; 3]),
}

impl Peer {
    fn host(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::Host4(address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::Host6([a, b, c, d])
            }
        }
    }

    fn network(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Self::Network4([a, b, c])
            }
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                Self::Network6([a, b, c])
            }
        }
    }

    const fn is_network(self) -> bool {
        matches!(self, Self::Network4(_) | Self::Network6(_))
    }
}

/// A counted connection, or one of a trusted proxy. The count is decremented on drop.
pub(crate) struct Admission {
    peers: Arc<Peers>,
    counted: Vec<Peer>,
}

/// The reason why a connection is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// The host or network has too many connections.
    TooMany,
    /// The peer is neither a trusted proxy nor on this host, and only these are served.
    NotAProxy,
}

impl ConnectionRefusal {
    /// All reasons.
    pub(crate) const ALL: [Self; 2] = [Self::TooMany, Self::NotAProxy];

    /// Returns the name in the metric.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TooMany => "too-many",
            Self::NotAProxy => "not-a-proxy",
        }
    }
}

impl Peers {
    /// Creates the limits of a listener.
    pub(crate) fn of(settings: &ListenerSettings) -> Self {
        Self {
            per_host: settings.connections_per_host,
            per_network: settings.connections_per_network,
            trusted: settings.trusted_proxies.clone(),
            proxies_only: settings.proxies_only,
            counts: Mutex::default(),
        }
    }

    /// Counts a connection from `address`, or rejects it.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admission, ConnectionRefusal> {
        if is_among(&self.trusted, address) {
            return self.count(Vec::new());
        }
        if self.proxies_only && !address.to_canonical().is_loopback() {
            return Err(ConnectionRefusal::NotAProxy);
        }
        self.count(vec![Peer::host(address), Peer::network(address)])
    }

    /// Counts a connection of a process of this host's `user`, or rejects it.
    pub(crate) fn admit_user(self: &Arc<Self>, user: u32) -> Result<Admission, ConnectionRefusal> {
        self.count(vec![Peer::User(user)])
    }

    fn count(self: &Arc<Self>, counted: Vec<Peer>) -> Result<Admission, ConnectionRefusal> {
        let mut counts = self.counts();
        let has_too_many = |peer: &Peer| {
            let limit = if peer.is_network() { self.per_network } else { self.per_host };
            counts.get(peer).is_some_and(|count| *count >= limit)
        };
        if counted.iter().any(has_too_many) {
            return Err(ConnectionRefusal::TooMany);
        }
        for peer in &counted {
            *counts.entry(*peer).or_default() += 1;
        }
        Ok(Admission { peers: Arc::clone(self), counted })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Peer, usize>> {
        // Counts are consistent between statements, so a poisoned lock can still be used.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut counts = self.peers.counts();
        for peer in &self.counted {
            if let Some(count) = counts.get_mut(peer) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(peer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(per_host: usize, proxies_only: bool) -> Arc<Peers> {
        let mut settings = ListenerSettings::new(Vec::new());
        settings.connections_per_host = per_host;
        settings.connections_per_network = 2 * per_host;
        settings.trusted_proxies = "10.0.0.0/8".parse().ok().into_iter().collect();
        settings.proxies_only = proxies_only;
        Arc::new(Peers::of(&settings))
    }

    #[test]
    fn loopback_is_served_where_only_proxies_are_allowed() {
        let peers = peers(2, true);
        for (address, refusal) in [
            ("10.1.2.3", None),
            ("::ffff:10.1.2.3", None),
            ("127.0.0.1", None),
            ("127.9.9.9", None),
            ("::1", None),
            ("::ffff:127.0.0.1", None),
            ("192.0.2.1", Some(ConnectionRefusal::NotAProxy)),
            ("::ffff:192.0.2.1", Some(ConnectionRefusal::NotAProxy)),
            ("fe80::1", Some(ConnectionRefusal::NotAProxy)),
            ("0.0.0.0", Some(ConnectionRefusal::NotAProxy)),
        ] {
            let admitted = address.parse().map(|address| peers.admit(address).err());
            assert_eq!(admitted, Ok(refusal), "{address}");
        }
        assert!(peers.counts().is_empty(), "whoever is refused is not counted");
    }

    #[test]
    fn local_users_have_separate_counts() {
        let peers = peers(2, true);
        let first: Vec<_> = (0..2).map(|_| peers.admit_user(0)).collect();
        assert!(first.iter().all(Result::is_ok));
        assert_eq!(peers.admit_user(0).err(), Some(ConnectionRefusal::TooMany));
        assert!(peers.admit_user(1).is_ok());
        drop(first);
        assert!(peers.counts().is_empty());
    }

    #[test]
    fn two_hosts_cannot_exhaust_a_worker() {
        let settings = ListenerSettings::new(Vec::new());
        let peers = Arc::new(Peers::of(&settings));
        for network in ["192.0.2", "2001:db8:1"] {
            let mut admitted = Vec::new();
            for host in 1..=9 {
                let address =
                    if network.contains(':') { format!("{network}:{host}::1") } else { format!("{network}.{host}") };
                let Ok(address) = address.parse() else { panic!("an address") };
                let before = admitted.len();
                admitted.extend(std::iter::from_fn(|| peers.admit(address).ok()));
                assert!(admitted.len() - before <= settings.connections_per_worker / 4);
            }
            assert_eq!(admitted.len(), settings.connections_per_worker / 2, "all hosts of a network together");
        }
        assert!(peers.counts().is_empty());
    }

    #[test]
    fn each_host_has_its_own_count() {
        let peers = peers(2, false);
        let admit = |address: &str| address.parse().ok().and_then(|address| peers.admit(address).ok());
        let first = admit("192.0.2.1");
        let second = admit("::ffff:192.0.2.1");
        assert!(first.is_some() && second.is_some());
        assert!(admit("192.0.2.1").is_none());
        assert!(admit("192.0.2.2").is_some());
        drop(first);
        assert!(admit("192.0.2.1").is_some());
        let same_network = [admit("2001:db8::1"), admit("2001:db8::2")];
        assert!(admit("2001:db8::ffff:3").is_none());
        assert!(admit("2001:db8:0:1::1").is_some());
        drop((second, same_network));
        let proxies: Vec<_> = (0..9).map(|_| admit("10.1.2.3")).collect();
        assert!(proxies.iter().all(Option::is_some));
        drop(proxies);
        assert!(peers.counts().is_empty());
    }
}
