//! The store on the embedded database.

use super::connection::{Purpose, Source, open};
use super::file::prepare;
use super::pool::{Look, Readers, joined, read, readers};
use super::settings::{OpenError, SqliteSettings};
use super::task::{Decide, Job};
use super::writer::{Message, Writer};
use crate::failure::{Failure, unavailable};
use crate::schema::instance;
use diesel::SqliteConnection;
use diesel::r2d2::Pool;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};
use vault_core::port::StoreError;
use vault_core::time::Timestamp;

/// The store on an embedded, encrypted database file: one writer, several readers. Implements every port.
///
/// Its methods need a Tokio runtime of any kind around them. Several stores, in one process or in many, may
/// share a file; who serves it takes a [`ServerLock`](super::ServerLock) beside.
pub struct SqliteStore {
    readers: Pool<Readers>,
    permits: Semaphore,
    queue: mpsc::Sender<Message>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Opens the database, proves its key and starts the writer. Blocks while it does.
    ///
    /// # Errors
    /// The file is not there, lies where it may not, does not open under the key, or a setting does not take.
    pub fn open(settings: SqliteSettings) -> Result<Arc<Self>, OpenError> {
        let path = prepare(&settings.path, settings.create)?;
        let source = Arc::new(Source { path, key: settings.key });
        let connection = open(&source, Purpose::Writing)?;
        let (queue, waiting) = mpsc::channel(settings.queue.max(1));
        let writer = Writer::new(Arc::clone(&source), connection);
        let writer = std::thread::Builder::new().name("vault-writer".to_owned()).spawn(move || writer.work(waiting))?;
        let permits = Semaphore::new(usize::try_from(settings.readers.max(1)).unwrap_or(1));
        let readers = readers(source, settings.readers);
        Ok(Arc::new(Self { readers, permits, queue, writer: Mutex::new(Some(writer)) }))
    }

    /// Makes the decisions that wait, moves the log into the file and ends the writer. Later decisions are
    /// refused.
    pub async fn close(&self) {
        let _ = self.queue.send(Message::Stop).await;
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        if let Some(writer) = writer {
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }

    /// Has the writer make a decision. Once queued it is made, whether its caller waits or not.
    pub(super) async fn write<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
    {
        let (job, answer) = Job::new(command, decide);
        self.queue.try_send(Message::Decide(Box::new(job))).map_err(|error| match error {
            TrySendError::Full(_) => unavailable("too many decisions wait for the writer"),
            TrySendError::Closed(_) => unavailable("the writer has ended"),
        })?;
        answer.await.unwrap_or_else(|_| Err(unavailable("the writer has ended")))
    }

    /// Has the writer make a decision that may take long.
    pub(super) async fn write_patiently<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
    {
        self.write(command, decide).await
    }

    /// Answers a question on a reader, in one snapshot.
    pub(super) async fn read<Q, T>(&self, question: Q, look: Look<Q, T>) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        // No more threads than connections: the others would only wait for one.
        let permit = self.permits.acquire().await.map_err(|_| unavailable("the store is closed"))?;
        let readers = self.readers.clone();
        let answer = joined(tokio::task::spawn_blocking(move || read(&readers, &question, look)).await);
        drop(permit);
        answer
    }

    /// Whether a page can be read and the writer is at work. There is no other clock to compare with.
    pub(super) async fn measure(&self, _now: Timestamp) -> Result<Option<i64>, StoreError> {
        if self.queue.is_closed() {
            return Err(unavailable("the writer has ended"));
        }
        self.read((), |connection, ()| Box::pin(touch(connection))).await?;
        Ok(None)
    }
}

async fn touch(connection: &mut SqliteConnection) -> Result<(), Failure> {
    use super::backend::RunQuery as _;
    let _: Vec<i64> = diesel::QueryDsl::select(instance::table, instance::singleton).load(connection).await?;
    Ok(())
}

impl Drop for SqliteStore {
    /// Waits for the writer. A connection that is closed while the process exits meets what the database
    /// library's exit handlers have already taken away, and crashes.
    fn drop(&mut self) {
        let (ended, _) = mpsc::channel(1);
        self.queue = ended; // the writer makes what waits, then finds nobody left to ask
        if let Some(writer) = self.writer.lock().ok().and_then(|mut writer| writer.take()) {
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}
