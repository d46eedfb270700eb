//! The one client through which everything goes out.
//!
//! A request makes a connection of its own: its host is resolved once, the addresses are judged by the
//! [`EgressPolicy`](crate::EgressPolicy), and one that passed is connected to, so that no second look-up can lead
//! elsewhere. Addresses in place of names go the same way. No redirect is followed, no proxy is used, nothing is kept
//! between requests, and connection, time and size are bounded.

mod answer;
mod client;
mod resolve;
mod trust;

pub(crate) use answer::Answer;
pub(crate) use client::GuardedClient;
pub use resolve::Resolve;
pub(crate) use resolve::SystemResolver;
pub use trust::TrustError;
