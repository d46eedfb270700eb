//! The connection pool.

use super::connect::Connector;
use super::settings::ConnectError;
use bb8::{ManageConnection, Pool};
use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::PoolableConnection as _;
use std::time::Duration;

/// How long a transaction waits for a connection.
pub(super) const CONNECTION_WAIT: Duration = Duration::from_secs(2);
/// How long an idle connection is kept open.
const IDLE_CONNECTION: Duration = Duration::from_secs(300);

/// A connection of the pool.
pub(super) struct Pooled {
    pub(super) connection: AsyncPgConnection,
    /// Whether the connection must not be reused. Set while it is in use, and cleared after a complete exchange.
    pub(super) lost: bool,
    /// Whether statements are planned with their values.
    pub(super) plans_with_values: bool,
}

impl Pooled {
    pub(super) fn new(connection: AsyncPgConnection) -> Self {
        Self { connection, lost: false, plans_with_values: false }
    }
}

impl ManageConnection for Connector {
    type Connection = Pooled;
    type Error = ConnectError;

    async fn connect(&self) -> Result<Pooled, ConnectError> {
        Ok(Pooled::new(Connector::connect(self).await?))
    }

    /// Sends nothing to the server. Whether the socket is open is known locally.
    async fn is_valid(&self, pooled: &mut Pooled) -> Result<(), ConnectError> {
        if self.has_broken(pooled) {
            Err(ConnectError::Unreachable("the connection was closed".into()))
        } else {
            Ok(())
        }
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        pooled.lost || pooled.connection.is_broken()
    }
}

/// Creates a pool that opens connections on demand. Callers wait for a connection for at most `longest`.
pub(super) fn pool(connector: Connector, size: u32, longest: Duration) -> Pool<Connector> {
    Pool::builder()
        .max_size(size.max(1))
        .min_idle(None)
        .test_on_check_out(true)
        .max_lifetime(None)
        .idle_timeout(Some(IDLE_CONNECTION))
        .connection_timeout(longest)
        .retry_connection(false)
        .build_unchecked(connector)
}
