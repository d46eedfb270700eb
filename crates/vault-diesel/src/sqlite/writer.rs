//! The one writer: takes every decision that waits, lets them share one transaction and one sync to disk, and
//! only then answers. The more callers, the larger the batch: durable writes rise with load.

use super::batch::{Outcome, run_apart, run_together};
use super::connection::{Purpose, Source, open};
use super::settings::OpenError;
use super::severity::{is_disk_failure, is_full, is_locked, judge};
use super::statement::BeginWriting;
use super::task::Task;
use crate::failure::{NoSpace, Reports, Severity, no_space, unavailable};
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::sql_types::Integer;
use diesel::{RunQueryDsl as _, SqliteConnection};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use vault_core::port::{Event, RetryReason, StoreError};

/// The most decisions in one transaction.
const LARGEST_BATCH: usize = 1_024;
/// How long a caller waits for the file while another process writes.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often the writer tries for the file.
const TRY_EVERY: Duration = Duration::from_millis(1);
/// Under continuous load, how often the writer leaves the file free, and for how long: SQLite queues nobody,
/// so a command beside the server would otherwise never have its turn.
const BREAK_EVERY: Duration = Duration::from_millis(250);
/// As above.
const BREAK: Duration = Duration::from_millis(3);
/// Pages of log from which they are moved into the file.
const LONG_LOG: i32 = 1_000;
/// How many pages the log has, and how many of them were moved.
const LOG_PAGES: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Moves the pages that no reader holds up. When all are, the next commit begins the log anew.
const MOVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// The log's size from which it is cut, should readers have kept it from starting over.
const LOG_LIMIT: u64 = 64 * 1024 * 1024;
/// How often the log's size is looked at.
const LOG_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Moves the log into the file and makes it empty.
const CUT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";
/// How often a failure is logged.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);

/// What callers are told from then on.
pub(super) const DISK_FAILED: &str = "the disk failed a commit";

/// What the writer is sent.
pub(super) enum Message {
    /// A decision to make.
    Decide(Box<dyn Task>),
    /// Make what waits, then end.
    Stop,
}

/// The writer's own state; lives on its thread.
pub(super) struct Writer {
    source: Arc<Source>,
    log: PathBuf,
    connection: Option<SqliteConnection>,
    last_break: Instant,
    last_log_look: Instant,
    last_complaint: Option<Instant>,
    /// Told when the disk fails a commit.
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

    /// Works until told to stop, until nobody can send any more, or until the disk fails a commit.
    ///
    /// After such a failure the kernel may have dropped what it was to write and will not say so again, so no later
    /// commit could be trusted that builds on the same log. What is in the log at the start is for the same reason
    /// moved into the file first, which writes and syncs it anew. If the disk fails that, or any later move, the log must
    /// stay as it is until a process has read it anew: SQLite would not move twice what it has moved, and would overwrite it.
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

    /// Makes the decisions and answers their callers.
    fn decide(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        let Some(connection) = self.begin(&mut tasks) else { return };
        let mut outcome = run_together(connection, &mut tasks);
        if matches!(outcome, Outcome::Declined) && tasks.len() > 1 {
            self.reports.tell(Event::Retried(RetryReason::SharedTransaction));
            let Some(connection) = self.begin(&mut tasks) else { return };
            outcome = run_apart(connection, &mut tasks);
        }
        if matches!(outcome, Outcome::Unreadable) {
            // A page that the cipher had no memory to open is told as damage: once more, on another connection.
            self.connection = None;
            let Some(connection) = self.begin(&mut tasks) else { return };
            outcome = run_apart(connection, &mut tasks);
        }
        match outcome {
            Outcome::Committed => {
                let changes = tasks.len();
                tasks.into_iter().for_each(|task| task.answer());
                self.reports.tell(Event::ChangesCommitted { changes });
            }
            Outcome::Declined => tasks.into_iter().for_each(|task| task.answer()),
            Outcome::Unreadable => {
                self.connection = None;
                tasks.into_iter().for_each(|task| task.give_up(unavailable("the database could not be read")));
            }
            Outcome::Unsure(error) => {
                tracing::error!(error = &error as &(dyn std::error::Error + 'static), "the disk failed a commit");
                self.failure.send_replace(true);
                self.reports.tell(Event::CommitUnsure);
                tasks.into_iter().for_each(|task| task.give_up(unavailable(DISK_FAILED)));
            }
            Outcome::Full { lost } => {
                if lost {
                    self.connection = None;
                }
                self.complain(&NoSpace, "the database cannot be written");
                tasks.into_iter().for_each(|task| task.give_up(no_space()));
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

    /// Logs a failure, at most one a second: a full disk fails every batch.
    fn complain(&mut self, error: &(dyn std::error::Error + 'static), what: &str) {
        if self.last_complaint.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            self.last_complaint = Some(Instant::now());
            tracing::error!(error, "{what}");
        }
    }

    /// Takes the file for writing. Nothing, if that was not to be had: then no task is left unanswered.
    fn begin(&mut self, tasks: &mut Vec<Box<dyn Task>>) -> Option<&mut SqliteConnection> {
        loop {
            match self.try_begin() {
                Ok(()) => return self.connection.as_mut(),
                Err(WriteFailure::Locked) => give_up(tasks, |task| task.queued_at().elapsed() >= LONGEST_WAIT, locked),
                Err(WriteFailure::Full) => give_up(tasks, |_| true, no_space),
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
                    self.complain(&NoSpace, "the writer cannot open the database");
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
                self.complain(&NoSpace, "the writer cannot begin");
                Err(WriteFailure::Full)
            }
            Err(error) => {
                self.connection = None;
                self.complain(&error, "the writer cannot begin");
                Err(WriteFailure::Unavailable)
            }
        }
    }

    /// Keeps the log short; and leaves the file free for a moment, if it has not been for long.
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

    /// How long the log is, unless all of it was moved.
    fn pages_to_move(&mut self) -> i32 {
        let Some(connection) = &mut self.connection else { return 0 };
        let pages = sql::<(Integer, Integer, Integer)>(LOG_PAGES).get_result::<(i32, i32, i32)>(connection);
        pages.map_or(0, |(_, pages, moved)| if moved < pages { pages } else { 0 })
    }

    /// Moves the log into the file. Readers and full disks may hold that up; if the disk fails, nothing more is decided.
    fn maintain(&mut self, statements: &str) {
        let Some(connection) = &mut self.connection else { return };
        match connection.batch_execute(statements) {
            Ok(()) => {}
            Err(error) if is_disk_failure(&error) || judge(&error) == Severity::BrokenElsewhere => {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::error!(error, "the disk failed when the write-ahead log was moved into the database");
                self.failure.send_replace(true);
                // Whoever closes a file last moves the log, and removes it: this connection stays open as long as the process.
                std::mem::forget(self.connection.take());
            }
            Err(error) => tracing::warn!(error = %error, "the write-ahead log could not be cut"),
        }
    }
}

/// Why the file cannot be taken.
enum WriteFailure {
    /// Another process writes.
    Locked,
    /// The disk has no space left.
    Full,
    /// Not now.
    Unavailable,
}

/// Answers those callers whose decision will not be made.
fn give_up(tasks: &mut Vec<Box<dyn Task>>, whose: impl Fn(&dyn Task) -> bool, failure: fn() -> StoreError) {
    let (out, rest): (Vec<_>, Vec<_>) = tasks.drain(..).partition(|task| whose(task.as_ref()));
    out.into_iter().for_each(|task| task.give_up(failure()));
    *tasks = rest;
}

fn locked() -> StoreError {
    unavailable("the database is locked or cannot be written")
}

/// Answers those callers who wait, and takes no more.
fn refuse_all(mut queue: mpsc::Receiver<Message>) {
    queue.close();
    while let Some(message) = queue.blocking_recv() {
        match message {
            Message::Decide(task) => task.give_up(unavailable(DISK_FAILED)),
            Message::Stop => {}
        }
    }
}
