//! PostgreSQL 13 or later.

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

pub(crate) use connect::client;
pub use settings::{ConnectError, PostgresSettings};
pub use spread::{Distribution, DistributionError, TableDistribution};
pub use store::PostgresStore;
