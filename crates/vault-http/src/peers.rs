//! How many connections each peer has.

use crate::forwarded::is_among;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections per peer, over all workers.
pub(crate) struct Peers {
    limit: usize,
    trusted: Vec<IpNet>,
    counts: Mutex<HashMap<Peer, usize>>,
}

/// Who is counted as one: an IPv4 address, or the IPv6 /64 that one host can choose its addresses from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Peer {
    V4([u8; 4]),
    V6([u16; 4]),
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

impl Peers {
    pub(crate) fn new(limit: usize, trusted: Vec<IpNet>) -> Self {
        Self { limit, trusted, counts: Mutex::default() }
    }

    /// Counts a connection of `address`, unless it has too many.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admission> {
        if is_among(&self.trusted, address) {
            return Some(Admission(None));
        }
        let peer = Peer::of(address);
        let mut counts = self.counts();
        let count = counts.entry(peer).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(Admission(Some((Arc::clone(self), peer))))
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

    #[test]
    fn each_peer_has_its_own_count() {
        let trusted = "10.0.0.0/8".parse().ok().into_iter().collect();
        let peers = Arc::new(Peers::new(2, trusted));
        let admit = |address: &str| address.parse().ok().and_then(|address| peers.admit(address));
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
