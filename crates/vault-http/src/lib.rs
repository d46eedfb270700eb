//! The HTTP interface: actix-web around the use cases of `vault-core`.
//!
//! [`server`] gives the public listener, [`activation_server`] the one for integrations, [`admin_server`] the
//! operators'. A request goes through `exchange` (limits of the head, request id, headers of every answer, log,
//! metrics), `route`, and one file of `operation`, which parses, runs one use case and maps the result.
//!
//! Deliberately absent: anything by which the public listener could open a credential. [`ServerParts`] has no place
//! for an `Opener`, nor has any use case in it; only [`ActivationParts`] has.
//!
//! ```
//! let deletion = vault_http::routes().find(|route| route.operation == "delete").expect("it is served");
//! assert_eq!((deletion.method, deletion.template), ("DELETE", "{base}/organization-vault/{id}"));
//! ```
//!
//! The program `orgvault` makes the parts of the listeners in `crates/app/src/parts.rs`. A service with a web framework of its
//! own needs none of this: it calls the use cases (`docs/EMBEDDING.md` of the repository). `docs/API.md` describes the interface.

mod activation;
mod admin;
mod answer;
mod authorization;
mod body;
mod call;
mod checks;
mod concurrency;
mod connection;
mod console;
mod content;
mod deadline;
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
mod origin;
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
mod waiting;
mod wire;

pub use activation::{ActivationParts, activation_server};
pub use admin::{AdminParts, MetricsText, admin_server};
pub use origin::CurrentRequest;
pub use parts::ServerParts;
pub use readiness::Readiness;
pub use route::{Route, activation_routes, routes};
pub use server::{BoundServer, ListeningServer, server};
pub use settings::{
    ActivationSettings, AdminSettings, BasePath, Deadlines, ListenerSettings, Rate, ServerSettings, UnixSocket,
};
pub use tls::{Tls, TlsError};
pub use waiting::{WaitingParts, waiting_activation_server, waiting_server};
