//! PostgreSQL 13 or later.

mod backend;
mod changes;
mod connect;
mod connections;
mod deletes;
mod gather;
mod pool;
mod replacements;
mod saves;
mod settings;
mod severity;
mod store;
mod tls;
mod together;

#[expect(clippy::duplicate_mod, reason = "the decisions are compiled once per database")]
#[path = "../decision/mod.rs"]
mod decision;

pub(crate) use connect::client;
pub use settings::{ConnectError, PostgresSettings};
pub use store::PostgresStore;
