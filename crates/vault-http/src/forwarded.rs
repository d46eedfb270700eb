//! The client's address of a request.

use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns whether `address` is in one of `networks`.
pub(crate) fn is_among(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// Returns the client's address. This is the peer's, unless the peer is a trusted proxy. Then it is the rightmost
/// address in `forwarded_for` (the values of `X-Forwarded-For` in order) that is not a trusted proxy. Any client can
/// forge addresses to the left of it.
pub(crate) fn client_address<'a>(
    peer: IpAddr,
    forwarded_for: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &[IpNet],
) -> IpAddr {
    let mut client = peer.to_canonical();
    let mut hops = forwarded_for.rev().flat_map(|value| value.rsplit(|&byte| byte == b','));
    while is_among(trusted, client) {
        // Without a valid address before it, the proxy itself is the closest known hop.
        let Some(address) = hops.next().and_then(parse) else { break };
        client = address;
    }
    client
}

/// Warns once about an untrusted proxy, whose clients would all count as one network.
#[derive(Default)]
pub(crate) struct UntrustedProxy(AtomicBool);

impl UntrustedProxy {
    /// Inspects a request of `peer` with `X-Forwarded-For`. Returns whether it warned.
    pub(crate) fn notice(&self, peer: IpAddr, trusted: &[IpNet]) -> bool {
        let peer = peer.to_canonical();
        if self.0.load(Ordering::Relaxed) || is_among(trusted, peer) || self.0.swap(true, Ordering::Relaxed) {
            return false;
        }
        tracing::warn!(
            "Ignored X-Forwarded-For from {peer}, which is not a trusted proxy: all its clients count as one network. If it is \
             your proxy, pass --trusted-proxy {}. This is logged once.",
            IpNet::from(peer)
        );
        true
    }
}

/// Parses an address with or without a port.
fn parse(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse().ok().map(|socket: std::net::SocketAddr| socket.ip()))?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(peer: &str, forwarded: &[&str]) -> Option<String> {
        let trusted: Vec<IpNet> =
            ["10.0.0.0/8", "fd00::/8"].iter().filter_map(|network| network.parse().ok()).collect();
        let peer = peer.parse().ok()?;
        Some(client_address(peer, forwarded.iter().map(|value| value.as_bytes()), &trusted).to_string())
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let cases: &[(&str, &[&str], &str)] = &[
            ("203.0.113.9", &[], "203.0.113.9"),
            ("203.0.113.9", &["198.51.100.7"], "203.0.113.9"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("fd00::1", &["2001:db8::7"], "2001:db8::7"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.7 ,10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7"),
            ("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("10.0.0.1", &["[2001:db8::7]"], "2001:db8::7"),
            ("10.0.0.1", &["::ffff:198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["198.51.100.7, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7, , 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &[""], "10.0.0.1"),
        ];
        for (peer, forwarded, expected) in cases {
            assert_eq!(client(peer, forwarded).as_deref(), Some(*expected), "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn an_untrusted_proxy_is_warned_of_once() {
        let trusted: Vec<IpNet> = "10.0.0.0/8".parse().into_iter().collect();
        let noticed = UntrustedProxy::default();
        let notice = |peer: &str| peer.parse().is_ok_and(|peer| noticed.notice(peer, &trusted));
        assert_eq!(["10.0.0.1", "::ffff:10.0.0.1"].map(notice), [false; 2], "a trusted one is believed");
        assert_eq!(["127.0.0.1", "127.0.0.1", "192.0.2.1"].map(notice), [true, false, false]);
    }

    proptest! {
        #[test]
        fn an_untrusted_peer_is_always_the_client(values in prop::collection::vec("[ -~]{0,40}", 0..4)) {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            prop_assert_eq!(client("203.0.113.9", &values), Some("203.0.113.9".to_owned()));
        }

        #[test]
        fn what_a_client_writes_does_not_move_it(spoofed in "[ -~]{0,60}") {
            let value = format!("{spoofed}, 198.51.100.7");
            prop_assert_eq!(client("10.0.0.1", &[&value]), Some("198.51.100.7".to_owned()));
        }
    }
}
