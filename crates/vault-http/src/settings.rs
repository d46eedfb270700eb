//! How the listeners are set up.

use crate::tls::Tls;
use ipnet::IpNet;
use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use vault_core::credential::DataPolicy;
use vault_core::field::Invalid;

/// The connections that one worker takes by default. An idle one costs about 20 KiB.
const MAX_CONNECTIONS: usize = 8_192;

/// The public listener.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// What it has in common with every listener.
    pub listener: ListenerSettings,
    /// What every operation's path begins with.
    pub base_path: BasePath,
    /// What credentials may hold.
    pub data_policy: DataPolicy,
    /// Where integrations reach the activation listener, for people who set up jobs; `None` where there is none.
    pub activation_url: Option<String>,
    /// How often one network, an IPv4 /24 or an IPv6 /48, may send logins and enrolments; without limit if `None`.
    pub rate: Option<Rate>,
    /// The most requests of one account in progress at once.
    pub requests_per_account: usize,
    /// The most requests of one organization in progress at once.
    pub requests_per_organization: usize,
}

/// How often something may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second in the long run.
    pub per_second: NonZeroU32,
    /// Requests at once after a rest.
    pub burst: NonZeroU32,
}

/// The activation listener.
#[derive(Clone, Debug)]
pub struct ActivationSettings {
    /// What it has in common with every listener. It may have no address where there is a socket.
    pub listener: ListenerSettings,
    /// A socket in the file system, beside the addresses or in their place. Nothing on it is TLS.
    pub unix: Option<UnixSocket>,
    /// What every operation's path begins with.
    pub base_path: BasePath,
    /// How often one integration may ask for what opens credentials; without bound if `None`.
    pub rate: Option<Rate>,
}

/// A socket in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    /// Where. The directory must be there.
    pub path: PathBuf,
    /// Who may connect: the permission bits of its file, exactly, whatever the process's mask.
    pub mode: u32,
}

impl UnixSocket {
    /// For the owner and the group.
    pub const DEFAULT_MODE: u32 = 0o660;
}

/// The operators' listener.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// What it has in common with every listener.
    pub listener: ListenerSettings,
}

/// What every listener has.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// The addresses to listen on; port 0 takes any free port.
    pub listen: Vec<SocketAddr>,
    /// Sockets that were bound to some of these addresses before, as by a process that has given up the right to.
    pub bound: Vec<(SocketAddr, Arc<OwnedFd>)>,
    /// Speaks TLS with these; plain HTTP if `None`.
    pub tls: Option<Tls>,
    /// Host names that it answers to beside IP addresses, localhost and the names of its certificate.
    pub allowed_hosts: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is believed, and which may have any number of connections.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether nobody is served but trusted proxies and programs on this machine.
    pub proxies_only: bool,
    /// Threads that speak HTTP; as many as cores if `None`.
    pub workers: Option<NonZeroUsize>,
    /// The most connections of one host: an IPv4 address, an IPv6 /64, or a user of this machine on a Unix socket. Does not
    /// apply to trusted proxies.
    pub connections_per_host: usize,
    /// The most connections of one network, an IPv4 /24 or an IPv6 /48. Does not apply to trusted proxies.
    pub connections_per_network: usize,
    /// The most connections of one worker; past it, nothing more is accepted until one ends. Connections are spread evenly
    /// over the workers.
    pub connections_per_worker: usize,
    /// How long a peer may take.
    pub deadlines: Deadlines,
    /// How long requests under way may take after a stop was asked for.
    pub shutdown_timeout: Duration,
}

/// How long a peer may take. Progress extends none of them: a peer that sends or reads byte by byte is cut off as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For a TLS handshake; 5 s by default.
    pub handshake: Duration,
    /// For the head of a request; 5 s by default. That of a connection's first request may end half a second earlier.
    pub head: Duration,
    /// For the body of a request; 10 s by default.
    pub body: Duration,
    /// For reading an answer that no longer fits into the socket's buffer; 10 s by default.
    pub answer: Duration,
    /// For beginning another request; 75 s by default.
    pub idle: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(5),
            body: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            idle: Duration::from_secs(75),
        }
    }
}

impl ListenerSettings {
    /// Listening on `listen` with the defaults. No host can hold more than a quarter of the connections of a worker, no
    /// network more than half.
    pub fn new(listen: Vec<SocketAddr>) -> Self {
        Self {
            listen,
            bound: Vec::new(),
            tls: None,
            allowed_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            proxies_only: false,
            workers: None,
            connections_per_host: MAX_CONNECTIONS / 4,
            connections_per_network: MAX_CONNECTIONS / 2,
            connections_per_worker: MAX_CONNECTIONS,
            deadlines: Deadlines::default(),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}

/// The path under which the operations lie, which carries their version: `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasePath(String);

const INVALID_BASE_PATH: Invalid =
    Invalid("a base path has one or more segments of A-Z a-z 0-9 . _ ~ -, each after a slash, such as /v1");

impl BasePath {
    /// The longest base path, in characters.
    pub const MAX_LENGTH: usize = 64;

    /// The path's text: begins with a slash and does not end with one.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address `path`, which begins with a slash, below it.
    pub(crate) fn below(&self, path: &str) -> String {
        [self.as_str(), path].concat()
    }
}

impl Default for BasePath {
    fn default() -> Self {
        Self("/v1".to_owned())
    }
}

impl FromStr for BasePath {
    type Err = Invalid;

    /// One or more segments of `A-Z a-z 0-9 . _ ~ -`, each with a slash before it; neither `.` nor `..`.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let segments = text.strip_prefix('/').ok_or(INVALID_BASE_PATH)?;
        let sound = text.len() <= Self::MAX_LENGTH && segments.split('/').all(is_segment);
        if sound { Ok(Self(text.to_owned())) } else { Err(INVALID_BASE_PATH) }
    }
}

fn is_segment(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(plain)
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_paths_are_absolute_plain_and_without_a_last_slash() {
        for sound in ["/v1", "/vault/v1", "/a.b/~c-d_e", "/V2"] {
            assert_eq!(BasePath::from_str(sound).map(|path| path.to_string()), Ok(sound.to_owned()));
        }
        let long = format!("/{}", "a".repeat(64));
        for flawed in
            ["", "/", "v1", "/v1/", "//", "/a//b", "/.", "/..", "/a/../b", "/a b", "/%31", "/ä", "/a?b", &long]
        {
            assert_eq!(BasePath::from_str(flawed), Err(INVALID_BASE_PATH), "{flawed}");
        }
    }
}
