//! How PostgreSQL is reached, and why it may not be.

use secrecy::SecretString;
use std::time::Duration;

/// How PostgreSQL is reached.
#[derive(Debug)]
pub struct PostgresSettings {
    /// Its address, as `postgres://user:password@host1,host2/database?parameter=value`.
    ///
    /// Beside the parameters of `tokio_postgres::Config` it takes `sslmode=verify-ca` and `verify-full` and
    /// `sslrootcert=<file>`. Where TLS is used, the server's certificate and name are always verified. It is
    /// used unless `sslmode=disable` is given, or no `sslmode` is and every host and `hostaddr` is a socket or this
    /// machine. An address without a host counts as remote.
    pub url: SecretString,
    /// The most connections at once.
    pub connections: u32,
    /// The longest that a decision or a read takes before it is given up, whatever becomes of the network. A single
    /// statement is given five sevenths of it, and the wait for one lock a little more than half.
    pub longest_wait: Duration,
}

impl PostgresSettings {
    /// Settings for up to ten connections and waits of 2.8 s.
    pub const fn new(url: SecretString) -> Self {
        Self { url, connections: 10, longest_wait: Duration::from_millis(2_800) }
    }
}

/// PostgreSQL cannot be reached or is not one to rely on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not one.
    #[error("invalid database URL")]
    Address(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The certificates to verify the server by cannot be read.
    #[error("the CA certificates for the database connection cannot be used")]
    Certificates(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server does not let us in.
    #[error("cannot connect to the database")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The tables are spread, and the server did not load the extension that finds their rows.
    #[error(
        "the tables of the database are distributed with Citus, but its server has not loaded it. Add citus to \
         shared_preload_libraries on every node, and restart them"
    )]
    NotLoaded,
    /// The server is too old.
    #[error("PostgreSQL 13 or later is required; the server's version number is {found}")]
    TooOld {
        /// Its `server_version_num`.
        found: i32,
    },
}
