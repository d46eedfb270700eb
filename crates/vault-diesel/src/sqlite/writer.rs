//! The single writer. It runs all queued tasks in one transaction with one sync to disk, and then responds to their
//! callers. More callers make larger batches, so the rate of durable writes increases with load.

use super::batch::{Outcome, run_apart, run_together};
use super::connection::{Purpose, Source, open};
use super::settings::OpenError;
use super::severity::{classify, is_disk_failure, is_full, is_locked};
use super::statement::BeginWriting;
use super::task::Task;
use crate::failure::{Reports, Severity, unavailable};
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::sql_types::Integer;
use diesel::{RunQueryDsl as _, SqliteConnection};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use vault_core::port::{Event, RetryReason, StoreError};

/// Maximum number of tasks in one transaction.
const LARGEST_BATCH: usize = 1_024;
/// How long a caller waits while another process has the write lock.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Interval at which the writer tries to acquire the lock.
const TRY_EVERY: Duration = Duration::from_millis(1);
/// Under continuous load, how often the writer releases the lock for a moment. SQLite has no lock queue, so a command
/// that runs next to the server would otherwise never get the lock.
const BREAK_EVERY: Duration = Duration::from_millis(250);
/// How long it releases the lock.
const BREAK: Duration = Duration::from_millis(3);
/// Number of pages in the log that triggers a checkpoint.
const LONG_LOG: i32 = 1_000;
/// Reads how many pages the log has and how many of them are checkpointed.
const LOG_PAGES: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Checkpoints the pages that no reader still needs. After a complete checkpoint, the next commit restarts the log.
const MOVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Size of the log that triggers a truncation, if readers have kept it from restarting.
const LOG_LIMIT: u64 = 64 * 1024 * 1024;
/// Interval at which the size of the log is checked.
const LOG_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Checkpoints the log and truncates it.
const CUT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";
/// Minimum interval between two logged failures.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);

/// Error message for all callers after the disk has failed a commit.
pub(super) const DISK_FAILED: &str = "the disk failed a commit";

/// A message to the writer.
pub(super) enum Message {
    /// Run a task.
    Decide(Task),
    /// Run the queued tasks, then stop.
    Stop,
}

/// State of the writer, owned by its thread.
pub(super) struct Writer {
    source: Arc<Source>,
    log: PathBuf,
    connection: Option<SqliteConnection>,
    last_break: Instant,
    last_log_look: Instant,
    last_complaint: Option<Instant>,
    /// Set when the disk fails a commit.
    failure: watch::Sender<bool>,
    reports: Arc<Reports>,
}

impl Writer {
    pub(super) fn new(
        source: Arc<Source>,
        connection: SqliteConnection,
        failure: watch::Sender<bool>,
        reports: Arc<Reports>,
    ) -> Self {
        let mut log = PathBuf::from(&source.path).into_os_string();
        log.push("-wal");
        let now = Instant::now();
        Self {
            source,
            log: log.into(),
            connection: Some(connection),
            last_break: now,
            last_log_look: now,
            last_complaint: None,
            failure,
            reports,
        }
    }

    /// Runs until [`Message::Stop`] arrives, every sender is dropped, or the disk fails a commit or checkpoint.
    ///
    /// After a failed sync, the kernel may have dropped the unwritten data and does not report the error again. A later
    /// commit to the same log could therefore not be trusted. For the same reason, the log that exists at startup is
    /// first checkpointed into the database file, which writes and syncs it again. If any checkpoint fails, the log
    /// must stay unchanged until another process has read it: SQLite would not checkpoint its pages again, and would
    /// overwrite them.
    pub(super) fn work(mut self, mut queue: mpsc::Receiver<Message>) {
        self.maintain(CUT);
        let mut messages = Vec::with_capacity(LARGEST_BATCH);
        loop {
            if *self.failure.borrow() {
                return refuse_all(queue);
            }
            let idle_since = Instant::now();
            if queue.blocking_recv_many(&mut messages, LARGEST_BATCH) == 0 {
                break;
            }
            if idle_since.elapsed() >= BREAK {
                self.last_break = Instant::now();
            }
            let mut tasks = Vec::with_capacity(messages.len());
            for message in messages.drain(..) {
                match message {
                    Message::Decide(task) => tasks.push(task),
                    Message::Stop => queue.close(),
                }
            }
            if !tasks.is_empty() {
                self.decide(tasks);
                if !*self.failure.borrow() {
                    self.rest();
                }
            }
        }
        self.maintain(CUT);
    }

    /// Runs the tasks and responds to their callers.
    fn decide(&mut self, mut tasks: Vec<Task>) {
        let Some(connection) = self.begin(&mut tasks) else { return };
        let mut outcome = run_together(connection, &mut tasks);
        if matches!(outcome, Outcome::Declined) && tasks.len() > 1 {
            self.reports.report(Event::Retried(RetryReason::SharedTransaction));
            let Some(connection) = self.begin(&mut tasks) else { return };
            outcome = run_apart(connection, &mut tasks);
        }
        if matches!(outcome, Outcome::Unreadable) {
            // SQLCipher reports a lack of memory for a page as damage. Try once more, on another connection.
            self.connection = None;
            let Some(connection) = self.begin(&mut tasks) else { return };
            outcome = run_apart(connection, &mut tasks);
        }
        match outcome {
            Outcome::Committed => {
                let changes = tasks.len();
                tasks.into_iter().for_each(|task| task.answer());
                self.reports.report(Event::ChangesCommitted { changes });
            }
            Outcome::Declined => tasks.into_iter().for_each(|task| task.answer()),
            Outcome::Unreadable => {
                self.connection = None;
                tasks.into_iter().for_each(|task| task.give_up(unavailable("the database could not be read")));
            }
            Outcome::Indeterminate(error) => {
                tracing::error!(error = &error as &(dyn std::error::Error + 'static), "the disk failed a commit");
                self.failure.send_replace(true);
                self.reports.report(Event::CommitIndeterminate);
                tasks.into_iter().for_each(|task| task.give_up(unavailable(DISK_FAILED)));
            }
            Outcome::Full { lost } => {
                if lost {
                    self.connection = None;
                }
                self.complain(&StoreError::Full, "the database cannot be written");
                tasks.into_iter().for_each(|task| task.give_up(StoreError::Full));
            }
            Outcome::Failed { error, lost } => {
                if lost {
                    self.connection = None;
                }
                if let Some(error) = error {
                    self.complain(&error, "a batch could not be committed");
                }
                tasks.into_iter().for_each(|task| task.give_up(unavailable("the transaction could not be committed")));
            }
        }
    }

    /// Logs a failure, at most one per second, because a full disk fails every batch.
    fn complain(&mut self, error: &(dyn std::error::Error + 'static), what: &str) {
        if self.last_complaint.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            self.last_complaint = Some(Instant::now());
            tracing::error!(error, "{what}");
        }
    }

    /// Starts a write transaction. Returns `None` if the lock could not be acquired, after responding to every caller.
    fn begin(&mut self, tasks: &mut Vec<Task>) -> Option<&mut SqliteConnection> {
        loop {
            match self.try_begin() {
                Ok(()) => return self.connection.as_mut(),
                Err(WriteFailure::Locked) => give_up(tasks, |task| task.queued_at().elapsed() >= LONGEST_WAIT, locked),
                Err(WriteFailure::Full) => give_up(tasks, |_| true, || StoreError::Full),
                Err(WriteFailure::Unavailable) => give_up(tasks, |_| true, locked),
            }
            if tasks.is_empty() {
                return None;
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    fn try_begin(&mut self) -> Result<(), WriteFailure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => match open(&self.source, Purpose::Writing) {
                Ok(connection) => self.connection.insert(connection),
                Err(OpenError::Database(error)) if error.downcast_ref().is_some_and(is_full) => {
                    self.complain(&StoreError::Full, "the writer cannot open the database");
                    return Err(WriteFailure::Full);
                }
                Err(error) => {
                    self.complain(&error, "the writer cannot open the database");
                    return Err(WriteFailure::Unavailable);
                }
            },
        };
        match BeginWriting.execute(connection) {
            Ok(_) => Ok(()),
            Err(error) if is_locked(&error) => Err(WriteFailure::Locked),
            Err(error) if is_full(&error) => {
                self.connection = None;
                self.complain(&StoreError::Full, "the writer cannot begin");
                Err(WriteFailure::Full)
            }
            Err(error) => {
                self.connection = None;
                self.complain(&error, "the writer cannot begin");
                Err(WriteFailure::Unavailable)
            }
        }
    }

    /// Keeps the log short, and releases the lock for a moment after a long period of load.
    fn rest(&mut self) {
        if self.pages_to_move() >= LONG_LOG {
            self.maintain(MOVE);
        }
        if self.last_break.elapsed() >= BREAK_EVERY {
            std::thread::sleep(BREAK);
            self.last_break = Instant::now();
        }
        if self.last_log_look.elapsed() >= LOG_LOOK_EVERY {
            self.last_log_look = Instant::now();
            if std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_LIMIT) {
                self.maintain("PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 0");
            }
        }
    }

    /// Returns the number of pages in the log, or 0 if all of them are checkpointed.
    fn pages_to_move(&mut self) -> i32 {
        let Some(connection) = &mut self.connection else { return 0 };
        let pages = sql::<(Integer, Integer, Integer)>(LOG_PAGES).get_result::<(i32, i32, i32)>(connection);
        pages.map_or(0, |(_, pages, moved)| if moved < pages { pages } else { 0 })
    }

    /// Runs a checkpoint. Readers and a full disk can delay it. If the disk fails, the writer stops.
    fn maintain(&mut self, statements: &str) {
        let Some(connection) = &mut self.connection else { return };
        match connection.batch_execute(statements) {
            Ok(()) => {}
            Err(error) if is_disk_failure(&error) || classify(&error) == Severity::BrokenElsewhere => {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::error!(error, "the disk failed when the write-ahead log was moved into the database");
                self.failure.send_replace(true);
                // The connection that closes a file last checkpoints and removes the log, so keep this one open until
                // the process exits.
                std::mem::forget(self.connection.take());
            }
            Err(error) => tracing::warn!(error = %error, "the write-ahead log could not be cut"),
        }
    }
}

/// Reason why no write transaction was started.
enum WriteFailure {
    /// Another process has the lock.
    Locked,
    /// The disk is full.
    Full,
    /// The database cannot be opened or written at the moment.
    Unavailable,
}

/// Sends `failure` to the selected callers and removes their tasks.
fn give_up(tasks: &mut Vec<Task>, whose: impl Fn(&Task) -> bool, failure: fn() -> StoreError) {
    let (out, rest): (Vec<_>, Vec<_>) = tasks.drain(..).partition(|task| whose(task));
    out.into_iter().for_each(|task| task.give_up(failure()));
    *tasks = rest;
}

fn locked() -> StoreError {
    unavailable("the database is locked or cannot be written")
}

/// Closes the queue, and responds to the callers in it.
fn refuse_all(mut queue: mpsc::Receiver<Message>) {
    queue.close();
    while let Some(message) = queue.blocking_recv() {
        match message {
            Message::Decide(task) => task.give_up(unavailable(DISK_FAILED)),
            Message::Stop => {}
        }
    }
}
