//! The HTTP API: actix-web around the use cases of `vault-core`.
//!
//! [`server`] creates the public listener, [`activation_server`] the one for integrations, and [`admin_server`] the one
//! for operators. A request passes through `middleware` (limits of the head, request ID, response headers, log, metrics),
//! `routes` (host name, caller, role), and one file of `subject`, which runs one use case and converts the result.
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
mod body;
mod caller;
mod connections;
mod extract;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod limits;
mod listener;
mod local;
mod middleware;
mod openapi;
mod parts;
mod problem;
mod public;
mod query;
mod readiness;
mod respond;
mod routes;
mod server;
mod settings;
mod subject;
mod telemetry;
mod tls;
mod token;
mod unix;

pub use activation::{ActivationParts, activation_routes, activation_server};
pub use admin::{AdminParts, MetricsText, admin_server};
pub use local::OperatorApi;
pub use parts::ServerParts;
pub use public::{routes, server};
pub use readiness::Readiness;
pub use routes::{Access, Route};
pub use server::{BoundServer, ListeningServer};
pub use settings::{
    ActivationSettings, AdminSettings, BasePath, Deadlines, ListenerSettings, Rate, ServerSettings, UnixSocket,
};
pub use subject::audit::item as audit_item;
pub use tls::{Tls, TlsError, certificate_name};
