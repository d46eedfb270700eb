//! PostgreSQL 13 or later.

mod backend;
mod connect;
mod connections;
mod nodes;
mod pool;
mod settings;
mod severity;
mod spread;
mod store;
mod tls;
mod write_queue;

#[expect(clippy::duplicate_mod, reason = "the decisions are compiled once per database")]
#[path = "../decision/mod.rs"]
mod decision;

pub(crate) use connect::client;
pub use settings::{ConnectError, PostgresSettings};
pub use spread::{SpreadError, Spreading, TablePlace};
pub use store::PostgresStore;
