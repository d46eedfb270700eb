//! What runs in a transaction, without its type: what runs it is compiled once for each database.

use crate::failure::{Failure, fault};
use crate::rows::Kept;
use diesel::SqliteConnection;
use futures_util::future::BoxFuture;
use std::any::Any;
use vault_core::port::StoreError;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    /// Nothing was written, so nothing is rolled back.
    Unchanged,
    RollBack,
}

/// The outcome of a transaction and how it ends, or why it failed.
pub(crate) type Ended<T> = Result<(T, End), Failure>;

/// A transaction that keeps its outcome.
pub(crate) trait Work<C>: Send {
    /// Runs it on a connection with an open transaction. Run again, it replaces the outcome. Operations keep rows in `kept`
    /// for those that follow in the transaction, and others forget them.
    fn run<'a>(&'a mut self, connection: &'a mut C, kept: &'a Kept) -> BoxFuture<'a, Result<End, Failure>>;
}

/// Work that moves to another thread and back.
pub(crate) trait MovedWork: Work<SqliteConnection> + 'static {
    /// Returns the work, to be downcast to its type.
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl<W: Work<SqliteConnection> + 'static> MovedWork for W {
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// Returns work that moved to another thread and back.
pub(crate) fn returned<W: 'static>(work: Box<dyn MovedWork>) -> Result<W, StoreError> {
    match work.into_any().downcast::<W>() {
        Ok(work) => Ok(*work),
        Err(_) => Err(fault("a transaction came back as another one")),
    }
}

/// A function on a connection.
pub(crate) type Call<C, I, T> = for<'a> fn(&'a mut C, &'a I) -> BoxFuture<'a, Ended<T>>;

/// A transaction that is no operation: a function with its input, for the schema and the row of the instance.
pub(crate) struct Calling<C, I, T> {
    input: I,
    call: Call<C, I, T>,
    outcome: Option<T>,
}

impl<C, I, T> Calling<C, I, T> {
    pub(crate) fn new(input: I, call: Call<C, I, T>) -> Self {
        Self { input, call, outcome: None }
    }

    pub(crate) fn outcome(self) -> Result<T, StoreError> {
        self.outcome.ok_or_else(|| fault("a transaction was not run"))
    }
}

impl<C: Send, I: Send + Sync, T: Send> Work<C> for Calling<C, I, T> {
    fn run<'a>(&'a mut self, connection: &'a mut C, kept: &'a Kept) -> BoxFuture<'a, Result<End, Failure>> {
        kept.forget();
        Box::pin(async move {
            let (outcome, end) = (self.call)(connection, &self.input).await?;
            self.outcome = Some(outcome);
            Ok(end)
        })
    }
}
