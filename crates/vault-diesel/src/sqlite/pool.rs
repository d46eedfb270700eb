//! Pool of read-only connections.

use super::connection::{Purpose, Source, open};
use super::settings::OpenError;
use super::severity::classify;
use super::statement::{BeginSnapshot, Commit, Rollback};
use crate::failure::{Failure, Reports, Severity, fault, unavailable};
use crate::load::{StoreLoad, Wait};
use crate::rows::Kept;
use crate::turns::{FairQueue, Waiting};
use crate::work::MovedWork;
use diesel::r2d2::{ManageConnection, NopErrorHandler, Pool};
use diesel::{RunQueryDsl as _, SqliteConnection};
use futures_util::FutureExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use vault_core::id::OrganizationId;
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

/// A read with its caller.
pub(super) struct QueuedRead {
    work: Box<dyn MovedWork>,
    reply: oneshot::Sender<Result<Box<dyn MovedWork>, StoreError>>,
    wait: Option<Wait>,
}

impl Waiting for QueuedRead {
    fn is_cancelled(&self) -> bool {
        self.reply.is_closed()
    }
}

/// The readers, with the reads that wait for one. There are at most as many threads as connections: more would only wait for one.
pub(super) struct ReaderPool {
    pool: Mutex<Option<Pool<Readers>>>,
    queue: FairQueue<QueuedRead>,
    size: usize,
    reports: Arc<Reports>,
}

impl ReaderPool {
    /// Creates the pool. Connections are opened on demand.
    pub(super) fn new(source: Arc<Source>, size: u32, reports: Arc<Reports>) -> Self {
        let pool = Mutex::new(Some(readers(source, size)));
        let size = usize::try_from(size.max(1)).unwrap_or(1);
        Self { pool, queue: FairQueue::new(size), size, reports }
    }

    /// Returns the load without that of the writer.
    pub(super) fn load(&self) -> StoreLoad {
        let idle = self.pool().map_or(0, |pool| pool.state().idle_connections);
        let in_use = self.size.saturating_sub(self.queue.available());
        StoreLoad { waiting: 0, in_use, idle: usize::try_from(idle).unwrap_or_default(), limit: self.size }
    }

    /// Rejects all waiting and all later reads. Returns the connections that are not in use.
    pub(super) fn close(&self) -> Option<Pool<Readers>> {
        self.queue.close();
        self.pool.lock().ok().and_then(|mut pool| pool.take())
    }

    fn pool(&self) -> Option<Pool<Readers>> {
        self.pool.lock().ok().and_then(|pool| pool.clone())
    }

    /// Runs a query on a thread in one snapshot. It uses its connection even after the caller is dropped.
    pub(super) async fn read(
        self: &Arc<Self>,
        organization: Option<OrganizationId>,
        work: Box<dyn MovedWork>,
    ) -> Result<Box<dyn MovedWork>, StoreError> {
        let closed = || unavailable("the database is closed");
        let (reply, answer) = oneshot::channel();
        let mut read = QueuedRead { work, reply, wait: None };
        let entered = if self.queue.try_enter().map_err(|_| closed())? {
            Some(read)
        } else {
            read.wait = Some(Wait::new(Arc::clone(&self.reports)));
            self.queue.enter(organization, read).map_err(|_| closed())?
        };
        if let Some(mut read) = entered {
            let readers = Arc::clone(self);
            // The thread continues with reads that wait. Waking their callers first, to start a thread, would cost more than some
            // of the reads.
            tokio::task::spawn_blocking(move || {
                loop {
                    readers.run(read);
                    match readers.queue.leave() {
                        Some(next) => read = next,
                        None => break,
                    }
                }
            });
        }
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    fn run(&self, read: QueuedRead) {
        let QueuedRead { mut work, reply, wait } = read;
        if let Some(mut wait) = wait {
            wait.obtained = true;
        }
        let run = AssertUnwindSafe(|| match self.pool() {
            Some(pool) => read_in(&pool, &mut *work),
            None => Err(unavailable("the database is closed")),
        });
        let result = catch_unwind(run).unwrap_or_else(|_| Err(fault("a read panicked")));
        // The caller may have been dropped.
        let _ = reply.send(result.map(|()| work));
    }
}

fn readers(source: Arc<Source>, size: u32) -> Pool<Readers> {
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
fn read_in(pool: &Pool<Readers>, work: &mut dyn MovedWork) -> Result<(), StoreError> {
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
    work.run(connection, &Kept::default()).now_or_never().ok_or(Failure::Overtaken)??;
    Commit.execute(connection)?;
    Ok(())
}
