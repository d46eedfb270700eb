//! The client for all outgoing requests.
//!
//! Each request uses a separate connection. The client resolves the host once, checks the addresses against the
//! [`EgressPolicy`](crate::EgressPolicy), and connects to one that passed. A second lookup could return another
//! address. IP addresses instead of host names are checked too. The client follows no redirects, uses no proxy and
//! keeps no state between requests. It limits the connection time, the total time and the size.

mod answer;
mod client;
mod resolve;
mod trust;

pub(crate) use answer::Answer;
pub(crate) use client::GuardedClient;
pub use resolve::Resolve;
pub(crate) use resolve::SystemResolver;
pub use trust::TrustError;
