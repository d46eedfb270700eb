//! A transaction that is queued for the writer.

use super::severity::classify;
use crate::failure::{Failure, Severity, fault};
use crate::transaction::{End, Ended};
use diesel::SqliteConnection;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tokio::sync::oneshot;
use vault_core::port::StoreError;

/// Function that runs a transaction.
pub(super) type Decide<C, T> = for<'a> fn(&'a mut SqliteConnection, &'a C) -> BoxFuture<'a, Ended<T>>;

/// Outcome of a task, as far as the batch needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// Its changes are to be committed.
    Kept,
    /// Its changes are to be undone.
    Undone,
    /// It failed. Its changes are to be undone, and the connection may have to be replaced.
    Failed(Severity),
}

/// A transaction with everything it needs, including its caller.
pub(super) trait Task: Send {
    /// Runs the task in the open transaction and stores its result. May be called again.
    fn run(&mut self, connection: &mut SqliteConnection) -> Ran;
    /// Sends the stored result to the caller, after the commit.
    fn answer(self: Box<Self>);
    /// Sends an error to the caller: the stored one, or `failure` if there is none.
    fn give_up(self: Box<Self>, failure: StoreError);
    /// Returns when the caller queued the task.
    fn queued_at(&self) -> Instant;
}

/// The task of one command.
pub(super) struct Job<C, T> {
    command: C,
    decide: Decide<C, T>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    queued_at: Instant,
}

impl<C, T> Job<C, T> {
    pub(super) fn new(command: C, decide: Decide<C, T>) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { command, decide, result: None, reply, queued_at: Instant::now() }, answer)
    }
}

impl<C: Send, T: Send> Task for Job<C, T> {
    fn run(&mut self, connection: &mut SqliteConnection) -> Ran {
        let Self { command, decide, .. } = self;
        let run = AssertUnwindSafe(|| decide(connection, command).now_or_never());
        let (result, ran) = match catch_unwind(run) {
            Ok(Some(Ok((outcome, End::RollBack)))) => (Ok(outcome), Ran::Undone),
            Ok(Some(Ok((outcome, End::Commit | End::Unchanged)))) => (Ok(outcome), Ran::Kept),
            // Authorization precedes the first write, so there is nothing to undo.
            Ok(Some(Err(Failure::Denied(denial)))) => (Err(StoreError::Denied(denial)), Ran::Kept),
            Ok(Some(Err(failure))) => {
                let severity = failure.severity(classify);
                (Err(failure.into_store_error(classify)), Ran::Failed(severity))
            }
            Ok(None) => (Err(fault("a decision waited")), Ran::Failed(Severity::BrokenElsewhere)),
            Err(_) => (Err(fault("a decision panicked")), Ran::Failed(Severity::Broken)),
        };
        self.result = Some(result);
        ran
    }

    fn answer(self: Box<Self>) {
        let result = self.result.unwrap_or_else(|| Err(fault("a decision was not run")));
        // The caller may have been dropped. The transaction is committed either way.
        let _ = self.reply.send(result);
    }

    fn give_up(self: Box<Self>, failure: StoreError) {
        let failure = self.result.and_then(Result::err).unwrap_or(failure);
        let _ = self.reply.send(Err(failure));
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }
}
