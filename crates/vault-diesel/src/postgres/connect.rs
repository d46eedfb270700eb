//! Connects to a server that accepts writes, with a limit on every wait.

use super::settings::{ConnectError, PostgresSettings};
use super::tls::{TlsMode, connector, is_local, split_address};
use diesel_async::AsyncPgConnection;
use secrecy::ExposeSecret as _;
use std::time::Duration;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time limit of connecting, per host.
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// How long sent data may stay unacknowledged before the connection counts as broken.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a connection may be idle before a keepalive probe is sent.
const IDLE: Duration = Duration::from_secs(10);
/// The oldest supported server, as `server_version_num`.
const OLDEST_SERVER: i32 = 130_000;

/// Returns the statement that sets up a connection. It limits every wait, and overrides a server default that would
/// acknowledge a commit before it is on disk.
///
/// Plans are generic and find each row by an index. The server's statistics may not include a new organization yet, or
/// may overestimate or underestimate how many rows match a filter. The server would then read all rows of an
/// organization to find a few. These settings make a statement that can only scan a whole table look so expensive that
/// the server would JIT-compile it at each use, so JIT compilation is off.
fn set_up_within(longest_wait: Duration) -> String {
    let (statement, lock) = (longest_wait * 5 / 7, longest_wait * 15 / 28);
    format!(
        "SELECT
            current_setting('server_version_num')::int,
            set_config('statement_timeout', '{}', false),
            set_config('lock_timeout', '{}', false),
            set_config('idle_in_transaction_session_timeout', '10000', false),
            set_config('plan_cache_mode', 'force_generic_plan', false),
            set_config('enable_seqscan', 'off', false),
            set_config('enable_bitmapscan', 'off', false),
            set_config('enable_hashjoin', 'off', false),
            set_config('enable_mergejoin', 'off', false),
            set_config('jit', 'off', false),
            set_config('search_path', CASE current_setting('search_path')
                WHEN '\"$user\", public' THEN 'public, pg_temp' ELSE current_setting('search_path') END, false),
            set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
        statement.as_millis(),
        lock.as_millis(),
    )
}
/// Errors are recognized by their English message if Diesel does not pass on their code. Only some roles may set this;
/// the others keep the server's setting.
const IN_ENGLISH: &str = "SET lc_messages TO 'C'";

/// Settings for connecting to one address.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls_mode: TlsMode,
    tls: Option<MakeRustlsConnect>,
    set_up: String,
}

impl Connector {
    /// Creates the connector for the address in the settings.
    pub(super) fn new(settings: &PostgresSettings) -> Result<Self, ConnectError> {
        let (address, tls_mode) = split_address(settings.url.expose_secret()); // for the driver's own settings
        let config: Config = address.parse().map_err(|error| ConnectError::Address(Box::new(error)))?;
        Self::with(config, tls_mode, set_up_within(settings.longest_wait))
    }

    /// Creates the connector for another server of the same database, with the same role.
    pub(super) fn to(&self, host: &str, port: u16) -> Result<Self, ConnectError> {
        let mut config = Config::new();
        config.host(host).port(port);
        if let Some(user) = self.config.get_user() {
            config.user(user);
        }
        if let Some(password) = self.config.get_password() {
            config.password(password);
        }
        if let Some(name) = self.config.get_dbname() {
            config.dbname(name);
        }
        if let Some(options) = self.config.get_options() {
            config.options(options);
        }
        if let Some(name) = self.config.get_application_name() {
            config.application_name(name);
        }
        Self::with(config, self.tls_mode.clone(), self.set_up.clone())
    }

    fn with(mut config: Config, tls_mode: TlsMode, set_up: String) -> Result<Self, ConnectError> {
        let use_tls = tls_mode.wanted.unwrap_or_else(|| !is_local(config.get_hosts(), config.get_hostaddrs()));
        config
            .ssl_mode(if use_tls { SslMode::Require } else { SslMode::Disable })
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(CONNECT_WAIT)
            .tcp_user_timeout(SILENCE)
            .keepalives_idle(IDLE)
            .keepalives_interval(SILENCE)
            .keepalives_retries(2);
        if config.get_application_name().is_none() {
            config.application_name("orgvault");
        }
        let tls = use_tls.then(|| connector(tls_mode.roots.as_deref())).transpose()?;
        Ok(Self { config, tls_mode, tls, set_up })
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<AsyncPgConnection, ConnectError> {
        match &self.tls {
            Some(tls) => self.connect_by(tls.clone()).await,
            None => self.connect_by(NoTls).await,
        }
    }

    async fn client(&self) -> Result<Client, ConnectError> {
        match &self.tls {
            Some(tls) => self.client_by(tls.clone()).await,
            None => self.client_by(NoTls).await,
        }
    }

    async fn client_by<T>(&self, tls: T) -> Result<Client, ConnectError>
    where
        T: MakeTlsConnect<Socket> + Send,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let unreachable = |error| ConnectError::Unreachable(Box::new(error));
        let (client, connection) = self.config.connect(tls).await.map_err(unreachable)?;
        tokio::spawn(connection); // ends with the client, whose statements report its errors
        let found: i32 =
            client.query_one(self.set_up.as_str(), &[]).await.and_then(|row| row.try_get(0)).map_err(unreachable)?;
        if found < OLDEST_SERVER {
            return Err(ConnectError::TooOld { found });
        }
        let _ = client.batch_execute(IN_ENGLISH).await;
        Ok(client)
    }

    async fn connect_by<T>(&self, tls: T) -> Result<AsyncPgConnection, ConnectError>
    where
        T: MakeTlsConnect<Socket> + Send,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let unreachable = |error| ConnectError::Unreachable(Box::new(error));
        let (client, connection) = self.config.connect(tls).await.map_err(unreachable)?;
        let mut connection = AsyncPgConnection::try_from_client_and_connection(client, connection)
            .await
            .map_err(|error| ConnectError::Unreachable(Box::new(error)))?;
        set_up(&mut connection, &self.set_up).await?;
        Ok(connection)
    }
}

/// Opens a connection of the driver, for statements outside the transactions of the ports.
pub(crate) async fn client(settings: &PostgresSettings) -> Result<Client, ConnectError> {
    Connector::new(settings)?.client().await
}

async fn set_up(connection: &mut AsyncPgConnection, sql: &str) -> Result<(), ConnectError> {
    use diesel::sql_types::Integer;
    use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
    // The first column is the version. The others repeat the values that were set.
    let found: i32 = diesel::dsl::sql::<Integer>(sql)
        .get_result(connection)
        .await
        .map_err(|error| ConnectError::Unreachable(Box::new(error)))?;
    if found < OLDEST_SERVER {
        return Err(ConnectError::TooOld { found });
    }
    let _ = connection.batch_execute(IN_ENGLISH).await;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use secrecy::SecretString;

    fn uses_tls(url: &str) -> bool {
        let connector = Connector::new(&PostgresSettings::new(SecretString::from(url))).unwrap();
        let required = connector.config.get_ssl_mode() == SslMode::Require;
        assert_eq!(required, connector.tls.is_some(), "{url}");
        required
    }

    #[test]
    fn tls_is_off_only_for_local_connections() {
        for local in [
            "postgres:///d?host=/run/postgresql",
            "postgres://localhost/d",
            "postgres://127.0.0.1,[::1]/d",
            "postgres://localhost/d?hostaddr=127.0.0.1",
        ] {
            assert!(!uses_tls(local), "{local}");
        }
        for remote in [
            "postgres://db.example/d",
            "postgres://localhost,db.example/d",
            "postgres://localhost/d?hostaddr=192.0.2.1",
            "postgres:///d?host=/run/postgresql&hostaddr=192.0.2.1",
            "postgres:///d?hostaddr=192.0.2.1",
            "postgres:///d",
        ] {
            assert!(uses_tls(remote), "{remote}");
            let separator = if remote.contains('?') { '&' } else { '?' };
            assert!(!uses_tls(&format!("{remote}{separator}sslmode=disable")), "{remote}: declined");
        }
    }
}
