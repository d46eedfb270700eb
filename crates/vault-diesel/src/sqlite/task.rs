//! One decision on its way through the writer.

use super::severity::judge;
use crate::failure::{Failure, Severity, fault};
use crate::transaction::{End, Ended};
use diesel::SqliteConnection;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tokio::sync::oneshot;
use vault_core::port::StoreError;

/// A decision that writes.
pub(super) type Decide<C, T> = for<'a> fn(&'a mut SqliteConnection, &'a C) -> BoxFuture<'a, Ended<T>>;

/// What running a decision came to, as far as its transaction is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// What it wrote stands.
    Kept,
    /// What it wrote is to be undone.
    Undone,
    /// It failed; what it wrote is to be undone, and the connection may be of no more use.
    Failed(Severity),
}

/// A decision with everything it needs, its caller included.
pub(super) trait Task: Send {
    /// Runs the decision in the open transaction and remembers what it came to. May be run again.
    fn run(&mut self, connection: &mut SqliteConnection) -> Ran;
    /// Tells the caller what the decision came to, now that it stands.
    fn answer(self: Box<Self>);
    /// Tells the caller that nothing was decided: for its own failure, or else for this one.
    fn give_up(self: Box<Self>, failure: StoreError);
    /// When the caller began to wait.
    fn queued_at(&self) -> Instant;
}

/// The task of a command.
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
            // Decided before the first write: there is nothing to undo.
            Ok(Some(Err(Failure::Denied(denial)))) => (Err(StoreError::Denied(denial)), Ran::Kept),
            Ok(Some(Err(failure))) => {
                let severity = failure.severity(judge);
                (Err(failure.into_store_error(judge)), Ran::Failed(severity))
            }
            Ok(None) => (Err(fault("a decision waited")), Ran::Failed(Severity::BrokenElsewhere)),
            Err(_) => (Err(fault("a decision panicked")), Ran::Failed(Severity::Broken)),
        };
        self.result = Some(result);
        ran
    }

    fn answer(self: Box<Self>) {
        let result = self.result.unwrap_or_else(|| Err(fault("a decision was not run")));
        // A caller that is gone misses its answer; the decision stands all the same.
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
