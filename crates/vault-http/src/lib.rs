//! The HTTP interface: actix-web around the use cases of `vault-core`.
//!
//! [`server`] gives the public listener, [`admin_server`] the operators' one. A request goes through
//! `exchange` (limits of the head, request id, headers of every answer, log, metrics), `route`, and one file of
//! `operation`, which parses, runs one use case and maps the result.
//!
//! Deliberately absent: anything that could open a credential. [`ServerParts`] has no place for an `Opener`,
//! nor has any use case in it.

mod admin;
mod answer;
mod authorization;
mod body;
mod brake;
mod call;
mod connection;
mod content;
mod exchange;
mod fault;
mod forwarded;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod limiter;
mod listing;
mod operation;
mod parts;
mod peers;
mod query;
mod refusal;
mod route;
mod server;
mod settings;
mod telemetry;
mod tls;
mod transport;
mod watch;

pub use admin::{AdminParts, MetricsText, admin_server};
pub use parts::{AccountParts, OwnAccountParts, Readiness, ServerParts};
pub use route::{Route, routes};
pub use server::{BoundServer, server};
pub use settings::{AdminSettings, BasePath, InvalidBasePath, ListenerSettings, Rate, ServerSettings};
pub use tls::{Tls, TlsError};
