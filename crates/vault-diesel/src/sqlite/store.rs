//! The store on the embedded database.

use super::connection::{Purpose, Source, open};
use super::file::prepare;
use super::pool::{ReaderPool, Readers};
use super::settings::{OpenError, SqliteSettings};
use super::task::Task;
use super::writer::{DISK_FAILED, Message, Writer};
use crate::failure::{Reports, unavailable};
use crate::load::{StoreLoad, operating};
use crate::port::{Database, DieselStore};
use crate::postgres::DistributionError;
use crate::rows::Operating;
use crate::work::{Call, Calling, MovedWork, returned};
use diesel::SqliteConnection;
use diesel::r2d2::Pool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tracing::{Instrument as _, Span};
use vault_core::id::OrganizationId;
use vault_core::operation;
use vault_core::port::{EventSink, StoreError};

/// Store on an embedded, encrypted database file, with one writer and several readers. Implements every port.
///
/// Its methods need a Tokio runtime of any kind. Several stores, in one or several processes, may share a file. A
/// server also acquires a [`ServerLock`](super::ServerLock).
pub type SqliteStore = DieselStore<Sqlite>;

/// Connections to an embedded, encrypted database file.
#[allow(missing_debug_implementations, reason = "`DieselStore` has one")]
pub struct Sqlite {
    readers: Arc<ReaderPool>,
    queue: mpsc::Sender<Message>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Whether the disk has failed a commit.
    failure: watch::Receiver<bool>,
    reports: Arc<Reports>,
    /// Shared by all connections and by everything that can open one.
    source: Arc<Source>,
}

/// Time limit of a read for an organization, including the wait for a connection.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long closing waits for reads in progress.
const LONGEST_CLOSING: Duration = Duration::from_secs(5);

impl SqliteStore {
    /// Opens the database, verifies its key and starts the writer. Blocks the thread.
    ///
    /// # Errors
    /// The file does not exist or is on a network file system, the key does not decrypt it, or a setting has no effect.
    pub fn open(settings: SqliteSettings) -> Result<Arc<Self>, OpenError> {
        let path = prepare(&settings.path, settings.create)?;
        let source = Arc::new(Source { path, key: settings.key, page_cache: settings.page_cache });
        let connection = open(&source, Purpose::Writing)?;
        let (queue, waiting) = mpsc::channel(settings.queue.max(1));
        let (tell, failure) = watch::channel(false);
        let reports = Arc::new(Reports::default());
        let writer = Writer::new(Arc::clone(&source), connection, tell, Arc::clone(&reports));
        let writer = std::thread::Builder::new().name("vault-writer".to_owned()).spawn(move || writer.work(waiting))?;
        let readers = Arc::new(ReaderPool::new(Arc::clone(&source), settings.readers, Arc::clone(&reports)));
        Ok(Arc::new(Self(Sqlite { readers, queue, writer: Mutex::new(Some(writer)), failure, reports, source })))
    }

    /// Runs the queued transactions, checkpoints the log into the database file, stops the writer and closes every
    /// connection. Rejects later reads and writes.
    ///
    /// A connection that is closed while the process exits crashes, because the exit handlers of SQLite have already
    /// freed what it uses. Close or drop every store before the process exits.
    pub async fn close(&self) {
        let _ = self.queue.send(Message::Stop).await;
        let (writer, readers, source) = (taken(&self.writer), self.readers.close(), Arc::clone(&self.source));
        // One reference belongs to the store, one to this function.
        let _ = tokio::task::spawn_blocking(move || end(writer, readers, &source, 2)).await;
    }

    /// Waits until the disk fails a commit, or forever if it never does. The store then rejects every operation, and
    /// only a process that opens the database again can continue.
    pub async fn failed(&self) {
        let mut failure = self.failure.clone();
        if failure.wait_for(|failed| *failed).await.is_err() {
            std::future::pending().await
        }
    }

    /// Returns the parameters of further connections.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Emits an event to `events` for each damaged row.
    pub fn report_to(&self, events: Arc<dyn EventSink>) {
        self.reports.to(events);
    }

    /// Returns the current load.
    pub fn load(&self) -> StoreLoad {
        let waiting = self.queue.max_capacity().saturating_sub(self.queue.capacity());
        StoreLoad { waiting, ..self.readers.load() }
    }
}

impl Sqlite {
    /// Refuses reads too if the writer has ended, because its failure must not stay unnoticed.
    fn refuse_after_failure(&self) -> Result<(), StoreError> {
        match *self.failure.borrow() {
            true => Err(unavailable(DISK_FAILED)),
            false if self.queue.is_closed() => Err(unavailable("the writer has ended")),
            false => Ok(()),
        }
    }

    /// Runs a transaction on the writer. Once queued, it runs even if its caller is dropped.
    async fn write(&self, work: Box<dyn MovedWork>, span: Span) -> Result<Box<dyn MovedWork>, StoreError> {
        self.refuse_after_failure()?;
        let (task, answer) = Task::new(work);
        self.queue.try_send(Message::Decide(task)).map_err(|error| match error {
            TrySendError::Full(_) => unavailable("too many writes are queued"),
            TrySendError::Closed(_) => unavailable("the writer has ended"),
        })?;
        let answer = answer.instrument(span).await;
        self.reports.seen(answer.unwrap_or_else(|_| Err(unavailable("the writer has ended"))))
    }

    /// Runs a query on a reader in one snapshot. Organizations that wait for a reader are served round-robin.
    async fn read(
        &self,
        organization: Option<OrganizationId>,
        work: Box<dyn MovedWork>,
        span: Span,
    ) -> Result<Box<dyn MovedWork>, StoreError> {
        self.refuse_after_failure()?;
        let read = self.readers.read(organization, work).instrument(span);
        let read = match organization {
            // Queries for an organization are bounded. Maintenance has no time limit.
            Some(_) => match tokio::time::timeout(READ_TIMEOUT, read).await {
                Ok(read) => read,
                Err(_) => Err(unavailable("a read took longer than 5 s")),
            },
            None => read.await,
        };
        self.reports.seen(read)
    }
}

impl Database for Sqlite {
    type Connection = SqliteConnection;

    async fn operate(&self, work: Box<dyn operation::Work>) -> Result<Box<dyn operation::Work>, StoreError> {
        let (writes, organization) = (work.writes(), work.organization());
        let span = operating(&*work);
        let work = match writes {
            false => self.read(organization, Box::new(Operating(work)), span).await?,
            true => self.write(Box::new(Operating(work)), span).await?,
        };
        Ok(returned::<Operating>(work)?.0)
    }

    async fn look<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        input: I,
        look: Call<SqliteConnection, I, T>,
    ) -> Result<T, StoreError> {
        let work = self.read(None, Box::new(Calling::new(input, look)), Span::none()).await?;
        returned::<Calling<SqliteConnection, I, T>>(work)?.outcome()
    }

    async fn change<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        input: I,
        change: Call<SqliteConnection, I, T>,
    ) -> Result<T, StoreError> {
        let work = self.write(Box::new(Calling::new(input, change)), Span::none()).await?;
        returned::<Calling<SqliteConnection, I, T>>(work)?.outcome()
    }

    /// Does nothing, because the file is on one host.
    async fn spread_new_tables(&self) -> Result<(), DistributionError> {
        Ok(())
    }
}

/// Waits until the writer has stopped and every connection is closed, including those that the threads of the pool may
/// still be opening.
fn end(writer: Option<JoinHandle<()>>, readers: Option<Pool<Readers>>, source: &Arc<Source>, shares: usize) {
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    drop(readers);
    let began = Instant::now();
    while Arc::strong_count(source) > shares && began.elapsed() < LONGEST_CLOSING {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn taken<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().ok().and_then(|mut slot| slot.take())
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        let (ended, _) = mpsc::channel(1);
        self.queue = ended; // the writer runs the queued commands, then stops because no sender remains
        end(taken(&self.writer), self.readers.close(), &self.source, 1);
    }
}
