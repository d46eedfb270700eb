//! The one writer: takes every decision that waits, lets them share one transaction and one sync to disk, and
//! only then answers. The more callers, the larger the batch: durable writes rise with load.

use super::backend::RunQuery as _;
use super::batch::{Outcome, run_apart, run_together};
use super::connection::{Purpose, Source, open};
use super::settings::OpenError;
use super::severity::{is_full, is_locked};
use super::statement::BeginWriting;
use super::task::Task;
use crate::failure::{NoSpace, Reports, no_space, unavailable};
use diesel::SqliteConnection;
use diesel::connection::SimpleConnection as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use vault_core::port::{Event, StoreError};

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
    /// moved into the file first, which writes and syncs it anew.
    pub(super) fn work(mut self, mut queue: mpsc::Receiver<Message>) {
        self.cut_log(CUT);
        let mut messages = Vec::with_capacity(LARGEST_BATCH);
        loop {
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
                if *self.failure.borrow() {
                    return refuse_all(queue);
                }
                self.rest();
            }
        }
        self.cut_log(CUT);
    }

    /// Makes the decisions and answers their callers.
    fn decide(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        let Some(connection) = self.begin(&mut tasks) else { return };
        let mut outcome = run_together(connection, &mut tasks);
        if matches!(outcome, Outcome::Declined) && tasks.len() > 1 {
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
            Outcome::Unsure(error) => {
                tracing::error!(error = &error as &(dyn std::error::Error + 'static), "the disk failed a commit");
                self.failure.send_replace(true);
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
                Err(Refusal::Locked) => give_up(tasks, |task| task.queued_at().elapsed() >= LONGEST_WAIT, locked),
                Err(Refusal::Full) => give_up(tasks, |_| true, no_space),
                Err(Refusal::Unavailable) => give_up(tasks, |_| true, locked),
            }
            if tasks.is_empty() {
                return None;
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    fn try_begin(&mut self) -> Result<(), Refusal> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => match open(&self.source, Purpose::Writing) {
                Ok(connection) => self.connection.insert(connection),
                Err(OpenError::Database(error)) if error.downcast_ref().is_some_and(is_full) => {
                    self.complain(&NoSpace, "the writer cannot open the database");
                    return Err(Refusal::Full);
                }
                Err(error) => {
                    self.complain(&error, "the writer cannot open the database");
                    return Err(Refusal::Unavailable);
                }
            },
        };
        match BeginWriting.execute(connection).into_inner() {
            Ok(_) => Ok(()),
            Err(error) if is_locked(&error) => Err(Refusal::Locked),
            Err(error) if is_full(&error) => {
                self.connection = None;
                self.complain(&NoSpace, "the writer cannot begin");
                Err(Refusal::Full)
            }
            Err(error) => {
                self.connection = None;
                self.complain(&error, "the writer cannot begin");
                Err(Refusal::Unavailable)
            }
        }
    }

    /// Leaves the file free for a moment, if it has not been for long; and keeps the log short.
    fn rest(&mut self) {
        if self.last_break.elapsed() >= BREAK_EVERY {
            std::thread::sleep(BREAK);
            self.last_break = Instant::now();
        }
        if self.last_log_look.elapsed() >= LOG_LOOK_EVERY {
            self.last_log_look = Instant::now();
            if std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_LIMIT) {
                self.cut_log("PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 0");
            }
        }
    }

    fn cut_log(&mut self, statements: &str) {
        if let Some(connection) = &mut self.connection
            && let Err(error) = connection.batch_execute(statements)
        {
            tracing::warn!(error = %error, "the write-ahead log could not be cut");
        }
    }
}

/// Why the file cannot be taken.
enum Refusal {
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
