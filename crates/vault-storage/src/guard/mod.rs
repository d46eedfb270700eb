//! The client for all outgoing requests.
//!
//! Each request uses a separate connection. The client resolves the host once, checks the addresses against the
//! [`EgressPolicy`](crate::EgressPolicy), and connects to one that passed. A second lookup could return another
//! address. IP addresses instead of host names are checked too. If [`Egress`](crate::Egress) selects the outgoing proxy,
//! the client checks the name instead, and the proxy resolves it. The client follows no redirects and keeps no state
//! between requests. It limits the connection time, the total time and the size.

mod answer;
mod ca_certificates;
mod client;
mod proxy;
mod resolve;
mod tunnel;

pub(crate) use answer::Answer;
pub use ca_certificates::TrustError;
pub(crate) use ca_certificates::certificates_in;
pub(crate) use client::GuardedClient;
pub use proxy::{InvalidProxyUrl, Proxy, ProxyUrl};
pub use resolve::Resolve;
pub(crate) use resolve::SystemResolver;
