//! The store on the embedded database.

use super::connection::{Purpose, Source, open};
use super::decision::Verdict;
use super::file::prepare;
use super::pool::{Look, Readers, joined, read, readers};
use super::settings::{OpenError, SqliteSettings};
use super::severity::judge;
use super::task::{Decide, Job};
use super::writer::{DISK_FAILED, Message, Writer};
use crate::db::OpenTx as _;
use crate::failure::{Failure, Reports, unavailable};
use crate::load::{StoreLoad, reading, turn, writing};
use crate::postgres::SpreadError;
use crate::schema::instance;
use crate::transaction::batch::{self, Batch};
use crate::transaction::{self, Decided, Read, Transaction};
use crate::turns::Turns;
use diesel::SqliteConnection;
use diesel::r2d2::Pool;
use futures_util::future::BoxFuture;
use std::fmt;
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
pub struct SqliteStore {
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
        Ok(Arc::new(Self {
            readers,
            turns: Turns::new(size),
            size,
            queue,
            writer: Mutex::new(Some(writer)),
            failure,
            reports,
            source,
        }))
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

    /// A file is on one machine.
    #[expect(clippy::unused_async, reason = "as on PostgreSQL")]
    pub(super) async fn spread_new_tables(&self) -> Result<(), SpreadError> {
        Ok(())
    }

    /// What decisions told of the store.
    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }

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

    /// Has the writer make a decision that may take long.
    pub(super) async fn write_patiently<C, T>(&self, command: C, decide: Decide<C, T>) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
    {
        self.write(command, decide).await
    }

    /// Has the writer make a decision that others may join, as all may here.
    pub(super) async fn write_together<A: Batch>(&self, command: Command<A>) -> Result<A::Outcome, StoreError> {
        flat(self.write(command, run_one).await)
    }

    /// Answers a question that belongs to no organization on a reader, in one snapshot.
    pub(super) async fn read<Q, T>(&self, question: Q, look: Look<Q, T>) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        self.read_for(None, question, look).await
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

    /// As [`SqliteStore::read_for`].
    pub(super) async fn read_at_once_for<Q, T>(
        &self,
        organization: Option<OrganizationId>,
        question: Q,
        look: Look<Q, T>,
    ) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        self.read_for(organization, question, look).await
    }

    /// Answers a question on the writer, whose cache has what it last wrote: a reader would have to decrypt it again.
    pub(super) async fn read_for_writing<Q, T>(
        &self,
        _organization: Option<OrganizationId>,
        question: Q,
        look: Look<Q, T>,
    ) -> Result<T, StoreError>
    where
        Q: Send + Sync + 'static,
        T: Send + 'static,
    {
        let read: Decide<(Q, Look<Q, T>), T> = |connection, (question, look)| {
            Box::pin(async move { Ok(Verdict::Refused(look(connection, question).await?)) })
        };
        self.write((question, look), read).await
    }

    /// Runs a transaction that writes.
    pub(super) async fn run<T: Transaction<Outcome: 'static> + Send + 'static>(
        &self,
        transaction: T,
    ) -> Result<T::Outcome, StoreError> {
        flat(self.write(transaction, run).await)
    }

    /// Like `run`: the rows of every organization are in one file.
    pub(super) async fn run_for<T: Transaction<Outcome: 'static> + Send + 'static>(
        &self,
        _organization: OrganizationId,
        transaction: T,
    ) -> Result<T::Outcome, StoreError> {
        self.run(transaction).await
    }

    /// Like `run`, for a transaction that may take long.
    pub(super) async fn run_patiently<T: Transaction<Outcome: 'static> + Send + 'static>(
        &self,
        transaction: T,
    ) -> Result<T::Outcome, StoreError> {
        self.run(transaction).await
    }

    /// Runs a transaction that reads one snapshot, for an organization or for the instance.
    pub(super) async fn answer<Q: Read<Outcome: 'static> + Send + Sync + 'static>(
        &self,
        organization: Option<OrganizationId>,
        query: Q,
    ) -> Result<Q::Outcome, StoreError> {
        self.read_for(organization, query, look).await
    }

    /// Like `answer`, for a transaction that sends its statements in one exchange with the server.
    pub(super) async fn answer_at_once<Q: Read<Outcome: 'static> + Send + Sync + 'static>(
        &self,
        organization: Option<OrganizationId>,
        query: Q,
    ) -> Result<Q::Outcome, StoreError> {
        self.read_at_once_for(organization, query, look).await
    }

    /// Like `answer`, for a read that a write follows.
    pub(super) async fn answer_for_writing<Q: Read<Outcome: 'static> + Send + Sync + 'static>(
        &self,
        organization: Option<OrganizationId>,
        query: Q,
    ) -> Result<Q::Outcome, StoreError> {
        self.read_for_writing(organization, query, look).await
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

/// Runs a transaction that writes on a connection on which one was begun.
fn run<'a, T: Transaction>(
    connection: &'a mut SqliteConnection,
    transaction: &'a T,
) -> BoxFuture<'a, Decided<Result<T::Outcome, Failure>>> {
    Box::pin(async move { transaction::run(&connection.tx(), transaction).await })
}

/// The outcome of a transaction, or why it was denied or refused.
fn flat<T>(outcome: Result<Result<T, Failure>, StoreError>) -> Result<T, StoreError> {
    outcome?.map_err(|failure| failure.into_store_error(judge))
}

/// Runs a transaction that reads on a connection.
fn look<'a, Q: Read>(connection: &'a mut SqliteConnection, query: &'a Q) -> BoxFuture<'a, Result<Q::Outcome, Failure>> {
    Box::pin(async move { query.read(&connection.tx()).await })
}

async fn touch(connection: &mut SqliteConnection) -> Result<(), Failure> {
    use super::backend::RunQuery as _;
    let _: Vec<i64> = diesel::QueryDsl::select(instance::table, instance::singleton).load(connection).await?;
    Ok(())
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

impl Drop for SqliteStore {
    fn drop(&mut self) {
        let (ended, _) = mpsc::channel(1);
        self.queue = ended; // the writer makes what waits, then finds nobody left to ask
        end(taken(&self.writer), taken(&self.readers), &self.source, 1);
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

/// Runs a command that may share a transaction with others on a connection on which one was begun.
fn run_one<'a, A: Batch>(
    connection: &'a mut SqliteConnection,
    command: &'a Command<A>,
) -> BoxFuture<'a, Decided<Result<A::Outcome, Failure>>> {
    Box::pin(async move { batch::run_one(&connection.tx(), command).await })
}
