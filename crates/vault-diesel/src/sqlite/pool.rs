//! Pool of read-only connections.

use super::connection::{Purpose, Source, open};
use super::settings::OpenError;
use super::severity::classify;
use super::statement::{BeginSnapshot, Commit, Rollback};
use crate::failure::{Failure, Severity, fault, unavailable};
use crate::transaction::work::MovedWork;
use diesel::r2d2::{ManageConnection, NopErrorHandler, Pool};
use diesel::{RunQueryDsl as _, SqliteConnection};
use futures_util::FutureExt as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use vault_core::port::StoreError;

/// How long a read waits for a connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(2);

/// Read-only connection.
pub(super) struct Reader {
    connection: SqliteConnection,
    /// Whether the connection must not be reused. SQLCipher stays broken after a page fails, although simple queries
    /// still succeed.
    lost: bool,
    /// Kept until the connection is closed. The store counts the references.
    _source: Arc<Source>,
}

/// Connection manager of the pool.
#[derive(Debug)]
pub(super) struct Readers(Arc<Source>);

impl ManageConnection for Readers {
    type Connection = Reader;
    type Error = OpenError;

    /// Opens the connection on a temporary thread. The threads of the pool, which call this method, may outlive the
    /// pool for a moment, and nothing can wait for them. If such a thread had used SQLite, its thread-local state could
    /// be freed concurrently by the end of the thread and by the exit handlers of the process.
    fn connect(&self) -> Result<Reader, OpenError> {
        let source = &self.0;
        let opened = thread::scope(|scope| scope.spawn(|| open(source, Purpose::Reading)).join());
        let connection = opened.unwrap_or_else(|_| Err(OpenError::Database("opening panicked".into())))?;
        Ok(Reader { connection, lost: false, _source: Arc::clone(source) })
    }

    fn is_valid(&self, _reader: &mut Reader) -> Result<(), OpenError> {
        Ok(())
    }

    fn has_broken(&self, reader: &mut Reader) -> bool {
        reader.lost
    }
}

/// Creates the pool. Connections are opened on demand.
pub(super) fn readers(source: Arc<Source>, size: u32) -> Pool<Readers> {
    Pool::builder()
        .max_size(size.max(1))
        .min_idle(Some(0))
        .test_on_check_out(false)
        .max_lifetime(None)
        .idle_timeout(None)
        .connection_timeout(CONNECTION_WAIT)
        .error_handler(Box::new(NopErrorHandler))
        .build_unchecked(Readers(source))
}

/// Runs a query in one snapshot.
///
/// If SQLCipher cannot allocate memory to decrypt a page, it reports damage. A read that finds damage is therefore
/// retried once on another connection.
pub(super) fn read(pool: &Pool<Readers>, work: &mut dyn MovedWork) -> Result<(), StoreError> {
    match read_once(pool, work) {
        Err((Severity::BrokenElsewhere, _)) => read_once(pool, work).map_err(|(_, failure)| failure),
        result => result.map_err(|(_, failure)| failure),
    }
}

fn read_once(pool: &Pool<Readers>, work: &mut dyn MovedWork) -> Result<(), (Severity, StoreError)> {
    let unavailable = |error| (Severity::Later, StoreError::Unavailable(Box::new(error)));
    let mut reader = pool.get().map_err(unavailable)?;
    // Mark the connection as lost until the read is complete, so that a panic does not return it to the pool.
    reader.lost = true;
    match read_on(&mut reader.connection, work) {
        Ok(()) => {
            reader.lost = false;
            Ok(())
        }
        Err(failure) => {
            let severity = failure.severity(classify);
            reader.lost = severity.loses_connection() || Rollback.execute(&mut reader.connection).is_err();
            Err((severity, failure.into_store_error(classify)))
        }
    }
}

fn read_on(connection: &mut SqliteConnection, work: &mut dyn MovedWork) -> Result<(), Failure> {
    BeginSnapshot.execute(connection)?;
    work.run(connection).now_or_never().ok_or(Failure::Overtaken)??;
    Commit.execute(connection)?;
    Ok(())
}

/// Returns the result of a read that ran on its own thread.
pub(super) fn joined<T>(result: Result<Result<T, StoreError>, tokio::task::JoinError>) -> Result<T, StoreError> {
    result.unwrap_or_else(|error| {
        Err(if error.is_panic() { fault("a read panicked") } else { unavailable("the process is stopping") })
    })
}
