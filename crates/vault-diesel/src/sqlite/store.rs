//! The store on the embedded database.

use super::connection::{Purpose, Source, open};
use super::file::prepare;
use super::pool::{Look, Readers, joined, read, readers};
use super::settings::{OpenError, SqliteSettings};
use super::severity::judge;
use super::task::{Decide, Job};
use super::writer::{DISK_FAILED, Message, Writer};
use crate::failure::{Reports, flat, unavailable};
use crate::load::{StoreLoad, reading, turn, writing};
use crate::port::{Database, DieselStore};
use crate::postgres::{Queued, SpreadError};
use crate::transaction::batch::run_one;
use crate::transaction::maintenance::health::ReadPage;
use crate::transaction::{End, Read, Transaction, read as read_in, run};
use crate::turns::Turns;
use diesel::r2d2::Pool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tracing::Instrument as _;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::port::{EventSink, StoreError};
use vault_core::time::Timestamp;

/// The store on an embedded, encrypted database file: one writer, several readers. Implements every port.
///
/// Its methods need a Tokio runtime of any kind around them. Several stores, in one process or in many, may
/// share a file; who serves it takes a [`ServerLock`](super::ServerLock) beside.
pub type SqliteStore = DieselStore<Sqlite>;

/// An embedded, encrypted database file.
#[allow(missing_debug_implementations, reason = "`DieselStore` has one")]
pub struct Sqlite {
    readers: Mutex<Option<Pool<Readers>>>,
    turns: Turns,
    size: usize,
    queue: mpsc::Sender<Message>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Whether the disk has failed a commit.
    failure: watch::Receiver<bool>,
    reports: Arc<Reports>,
    /// Every connection and whoever may open one has a share of it.
    source: Arc<Source>,
}

/// How long a read of an organization may take, with waiting for its turn.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long closing waits for reads under way.
const LONGEST_CLOSING: Duration = Duration::from_secs(5);

impl SqliteStore {
    /// Opens the database, proves its key and starts the writer. Blocks while it does.
    ///
    /// # Errors
    /// The file is not there, lies where it may not, does not open under the key, or a setting does not take.
    pub fn open(settings: SqliteSettings) -> Result<Arc<Self>, OpenError> {
        let path = prepare(&settings.path, settings.create)?;
        let source = Arc::new(Source { path, key: settings.key, page_cache: settings.page_cache });
        let connection = open(&source, Purpose::Writing)?;
        let (queue, waiting) = mpsc::channel(settings.queue.max(1));
        let (tell, failure) = watch::channel(false);
        let reports = Arc::new(Reports::default());
        let writer = Writer::new(Arc::clone(&source), connection, tell, Arc::clone(&reports));
        let writer = std::thread::Builder::new().name("vault-writer".to_owned()).spawn(move || writer.work(waiting))?;
        let size = usize::try_from(settings.readers.max(1)).unwrap_or(1);
        let readers = Mutex::new(Some(readers(Arc::clone(&source), settings.readers)));
        Ok(Arc::new(Self(Sqlite {
            readers,
            turns: Turns::new(size),
            size,
            queue,
            writer: Mutex::new(Some(writer)),
            failure,
            reports,
            source,
        })))
    }

    /// Makes the decisions that wait, moves the log into the file, ends the writer and closes every connection.
    /// Later decisions and reads are refused.
    ///
    /// A connection that is closed while the process exits meets what the database library's exit handlers have
    /// already taken away, and crashes: so whoever ends the process closes its stores before, or drops them.
    pub async fn close(&self) {
        let _ = self.queue.send(Message::Stop).await;
        let (writer, readers, source) = (taken(&self.writer), taken(&self.readers), Arc::clone(&self.source));
        // One share is the store's own, one this function's.
        let _ = tokio::task::spawn_blocking(move || end(writer, readers, &source, 2)).await;
    }

    /// Waits until the disk fails a commit; for ever, if it never does. The store then refuses everything, and only
    /// a process that opens the database anew may go on with it.
    pub async fn failed(&self) {
        let mut failure = self.failure.clone();
        if failure.wait_for(|failed| *failed).await.is_err() {
            std::future::pending().await
        }
    }

    /// What opens further connections.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Has damaged rows counted and logged by `events`.
    pub fn report_to(&self, events: Arc<dyn EventSink>) {
        self.reports.to(events);
    }

    /// How busy it is.
    pub fn load(&self) -> StoreLoad {
        let readers = self.readers.lock().ok().and_then(|readers| readers.clone());
        let idle = readers.map_or(0, |readers| readers.state().idle_connections);
        StoreLoad {
            waiting: self.queue.max_capacity().saturating_sub(self.queue.capacity()),
            in_use: self.size.saturating_sub(self.turns.available()),
            idle: usize::try_from(idle).unwrap_or_default(),
            limit: self.size,
        }
    }
}

impl Sqlite {
    fn refuse_after_failure(&self) -> Result<(), StoreError> {
        if *self.failure.borrow() { Err(unavailable(DISK_FAILED)) } else { Ok(()) }
    }

    /// Has the writer make a decision. Once queued it is made, whether its caller waits or not.
    pub(super) async fn write<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
    {
        self.refuse_after_failure()?;
        let (job, answer) = Job::new(command, decide);
        self.queue.try_send(Message::Decide(Box::new(job))).map_err(|error| match error {
            TrySendError::Full(_) => unavailable("too many writes are queued"),
            TrySendError::Closed(_) => unavailable("the writer has ended"),
        })?;
        let answer = answer.instrument(writing::<C>()).await;
        self.reports.seen(answer.unwrap_or_else(|_| Err(unavailable("the writer has ended"))))
    }

    /// Answers a question on a reader, in one snapshot, when it is the turn of the organization that asks.
    pub(super) async fn read_for<Q, T>(
        &self,
        organization: Option<OrganizationId>,
        question: Q,
        look: Look<Q, T>,
    ) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        self.refuse_after_failure()?;
        self.reports.seen(self.read_in_turn(organization, question, look).instrument(reading::<Q>()).await)
    }

    async fn read_in_turn<Q, T>(
        &self,
        organization: Option<OrganizationId>,
        question: Q,
        look: Look<Q, T>,
    ) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        match organization {
            // What an organization asks for is bounded; maintenance takes as long as it takes.
            Some(_) => {
                match tokio::time::timeout(READ_TIMEOUT, self.read_on_turn(organization, question, look)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(unavailable("a read took longer than 5 s")),
                }
            }
            None => self.read_on_turn(organization, question, look).await,
        }
    }

    async fn read_on_turn<Q, T>(
        &self,
        organization: Option<OrganizationId>,
        question: Q,
        look: Look<Q, T>,
    ) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        // No more threads than connections: the others would only wait for one.
        let turn = turn(&self.turns, organization, &self.reports).await;
        let turn = turn.map_err(|_| unavailable("the database is closed"))?;
        let readers = self.readers.lock().ok().and_then(|readers| readers.clone());
        let readers = readers.ok_or_else(|| unavailable("the database is closed"))?;
        // Held on the thread: a read whose caller has gone away still uses a connection.
        let answer = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read(&readers, &question, look)
        });
        joined(answer.await)
    }
}

impl Database for Sqlite {
    async fn run<T: Transaction>(&self, transaction: T) -> Result<T::Outcome, StoreError> {
        flat(self.write(transaction, run).await, judge)
    }

    async fn write_together<A: Queued>(&self, command: Command<A>) -> Result<A::Outcome, StoreError> {
        flat(self.write(command, run_one).await, judge)
    }

    async fn answer<Q: Read>(&self, organization: Option<OrganizationId>, query: Q) -> Result<Q::Outcome, StoreError> {
        self.read_for(organization, query, read_in).await
    }

    /// Reads on the writer, whose cache has what it last wrote. A reader would have to decrypt it again.
    async fn answer_for_writing<Q: Read>(
        &self,
        _organization: Option<OrganizationId>,
        query: Q,
    ) -> Result<Q::Outcome, StoreError> {
        let look: Decide<Q, Q::Outcome> =
            |connection, query| Box::pin(async move { Ok((read_in(connection, query).await?, End::Unchanged)) });
        self.write(query, look).await
    }

    /// There is no other clock to compare with.
    async fn measure(&self, _now: Timestamp) -> Result<Option<i64>, StoreError> {
        if self.queue.is_closed() {
            return Err(unavailable("the writer has ended"));
        }
        self.answer(None, ReadPage).await?;
        Ok(None)
    }

    /// The file is on one host.
    async fn spread_new_tables(&self) -> Result<(), SpreadError> {
        Ok(())
    }

    fn reports(&self) -> &Reports {
        &self.reports
    }
}

/// Waits until the writer has ended and every connection is closed, those included that the pool's own threads
/// may still be opening.
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
        self.queue = ended; // the writer makes what waits, then finds nobody left to ask
        end(taken(&self.writer), taken(&self.readers), &self.source, 1);
    }
}
