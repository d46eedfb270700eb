//! The HTTP API: actix-web around the use cases of `vault-core`.
//!
//! [`server`] creates the public listener, [`activation_server`] the one for integrations, and [`admin_server`] the one
//! for operators. A request passes through `exchange` (limits of the head, request ID, response headers, log, metrics),
//! `route`, and one file of `operation`, which validates it, runs one use case and converts the result.
//!
//! The public listener deliberately cannot decrypt a credential. Neither [`ServerParts`] nor a use case in it contains
//! an `Opener`. Only [`ActivationParts`] does.
//!
//! ```
//! let deletion = vault_http::routes().find(|route| route.operation == "delete").expect("it is served");
//! assert_eq!((deletion.method, deletion.template), ("DELETE", "{base}/organization-vault/{id}"));
//! ```
//!
//! The program `orgvault` creates the parts of the listeners in `crates/app/src/parts.rs`. A service with its own web
//! framework does not need this crate: it calls the use cases (`docs/EMBEDDING.md` in the repository). `docs/API.md`
//! describes the HTTP API.

mod activation;
mod admin;
mod answer;
mod authorization;
mod body;
mod call;
mod checks;
mod completion;
mod concurrency;
mod connection;
mod console;
mod content;
mod deadline;
mod endpoint;
mod exchange;
mod forwarded;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod host;
mod limiter;
mod links;
mod openapi;
mod operation;
mod parts;
mod peers;
mod problem_response;
mod query;
mod readiness;
mod refusal;
mod request_framing;
mod route;
mod server;
mod settings;
mod telemetry;
mod throttle;
mod tls;
mod trace;
mod transport;
mod unix;
mod wire;

pub use activation::{ActivationParts, activation_server};
pub use admin::{AdminParts, MetricsText, admin_server};
pub use operation::items;
pub use operation::{activation_routes, routes};
pub use parts::ServerParts;
pub use readiness::Readiness;
pub use route::Route;
pub use server::{BoundServer, ListeningServer, server};
pub use settings::{
    ActivationSettings, AdminSettings, BasePath, Deadlines, ListenerSettings, Rate, ServerSettings, UnixSocket,
};
pub use tls::{Tls, TlsError, certificate_name};
