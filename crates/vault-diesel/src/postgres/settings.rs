//! Settings of the connection to PostgreSQL, and errors of connecting.

use secrecy::SecretString;
use std::time::Duration;

/// Settings of the connection to PostgreSQL.
#[derive(Debug)]
pub struct PostgresSettings {
    /// URL in the form `postgres://user:password@host1,host2/database?parameter=value`.
    ///
    /// In addition to the parameters of `tokio_postgres::Config`, it accepts `sslmode=verify-ca`, `sslmode=verify-full`
    /// and `sslrootcert=<file>`. TLS is off with `sslmode=disable`. It is also off without `sslmode`, or with `allow`
    /// or `prefer`, if every host and `hostaddr` is a Unix socket or a loopback address. Otherwise TLS is used, and the
    /// certificate and name of the server are always verified. A URL without a host counts as remote.
    pub url: SecretString,
    /// Maximum number of connections.
    pub connections: u32,
    /// Time limit of a transaction or read. A single statement may use five sevenths of it, and the wait for one lock a
    /// little more than half.
    pub longest_wait: Duration,
}

impl PostgresSettings {
    /// Returns settings with up to ten connections and a time limit of 2.8 s.
    pub const fn new(url: SecretString) -> Self {
        Self { url, connections: 10, longest_wait: Duration::from_millis(2_800) }
    }
}

/// Error of connecting to PostgreSQL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is malformed.
    #[error("invalid database URL")]
    Address(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The CA certificates cannot be read.
    #[error("the CA certificates for the database connection cannot be used")]
    Certificates(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server cannot be reached or rejects the connection.
    #[error("cannot connect to the database")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The tables are distributed, but the server has not loaded Citus, which locates their rows.
    #[error(
        "the tables of the database are distributed with Citus, but its server has not loaded it. Add citus to \
         shared_preload_libraries on every node, and restart them"
    )]
    NotLoaded,
    /// The server is too old.
    #[error("PostgreSQL 13 or later is required; the server's version number is {found}")]
    TooOld {
        /// The server's `server_version_num`.
        found: i32,
    },
}
