//! Who may connect, and how many connections each peer has.

use crate::forwarded::is_among;
use crate::settings::ListenerSettings;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections per peer, over all workers.
pub(crate) struct Peers {
    limit: usize,
    trusted: Vec<IpNet>,
    proxies_only: bool,
    counts: Mutex<HashMap<Peer, usize>>,
}

/// Who is counted as one: an IPv4 address, the IPv6 /64 that one host can choose its addresses from, or a user of this
/// machine whose programs come by a socket in the file system.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Peer {
    V4([u8; 4]),
    V6([u16; 4]),
    User(u32),
}

impl Peer {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// A counted connection, or one of a trusted proxy; no longer counted when dropped.
pub(crate) struct Admission(Option<(Arc<Peers>, Peer)>);

/// Why a connection is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its peer has too many.
    TooMany,
    /// Its peer is neither a trusted proxy nor on this machine, and nobody else is served.
    NotAProxy,
}

impl Refusal {
    /// As the metric names it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TooMany => "too-many",
            Self::NotAProxy => "not-a-proxy",
        }
    }
}

impl Peers {
    /// The peers of a listener.
    pub(crate) fn of(settings: &ListenerSettings) -> Self {
        Self {
            limit: settings.connections_per_peer,
            trusted: settings.trusted_proxies.clone(),
            proxies_only: settings.proxies_only,
            counts: Mutex::default(),
        }
    }

    /// Counts a connection of `address`, unless it may not connect or has too many.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admission, Refusal> {
        if is_among(&self.trusted, address) {
            return Ok(Admission(None));
        }
        if self.proxies_only && !address.to_canonical().is_loopback() {
            return Err(Refusal::NotAProxy);
        }
        self.count(Peer::of(address))
    }

    /// Counts a connection of a program of this machine's `user`, unless that has too many.
    pub(crate) fn admit_user(self: &Arc<Self>, user: u32) -> Result<Admission, Refusal> {
        self.count(Peer::User(user))
    }

    fn count(self: &Arc<Self>, peer: Peer) -> Result<Admission, Refusal> {
        let mut counts = self.counts();
        let count = counts.entry(peer).or_default();
        if *count >= self.limit {
            return Err(Refusal::TooMany);
        }
        *count += 1;
        Ok(Admission(Some((Arc::clone(self), peer))))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Peer, usize>> {
        // Counts are whole between any two statements.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let Some((peers, peer)) = self.0.take() else { return };
        let mut counts = peers.counts();
        if let Some(count) = counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(limit: usize, proxies_only: bool) -> Arc<Peers> {
        let mut settings = ListenerSettings::new(Vec::new());
        settings.connections_per_peer = limit;
        settings.trusted_proxies = "10.0.0.0/8".parse().ok().into_iter().collect();
        settings.proxies_only = proxies_only;
        Arc::new(Peers::of(&settings))
    }

    #[test]
    fn where_only_proxies_are_served_this_machine_is_the_exception() {
        let peers = peers(2, true);
        for (address, refusal) in [
            ("10.1.2.3", None),
            ("::ffff:10.1.2.3", None),
            ("127.0.0.1", None),
            ("127.9.9.9", None),
            ("::1", None),
            ("::ffff:127.0.0.1", None),
            ("192.0.2.1", Some(Refusal::NotAProxy)),
            ("::ffff:192.0.2.1", Some(Refusal::NotAProxy)),
            ("fe80::1", Some(Refusal::NotAProxy)),
            ("0.0.0.0", Some(Refusal::NotAProxy)),
        ] {
            let admitted = address.parse().map(|address| peers.admit(address).err());
            assert_eq!(admitted, Ok(refusal), "{address}");
        }
        assert!(peers.counts().is_empty(), "whoever is refused is not counted");
    }

    #[test]
    fn users_of_this_machine_have_their_own_counts() {
        let peers = peers(2, true);
        let first: Vec<_> = (0..2).map(|_| peers.admit_user(0)).collect();
        assert!(first.iter().all(Result::is_ok));
        assert_eq!(peers.admit_user(0).err(), Some(Refusal::TooMany));
        assert!(peers.admit_user(1).is_ok());
        drop(first);
        assert!(peers.counts().is_empty());
    }

    #[test]
    fn each_peer_has_its_own_count() {
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
