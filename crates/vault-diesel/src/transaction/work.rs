//! Transactions without their types: what runs them is compiled once for each database, and not once for each transaction.

use super::{End, Ended, Read, Transaction, run_in};
use crate::db::OpenTx;
use crate::failure::{Failure, Severity, fault};
use crate::rows::Kept;
use diesel::SqliteConnection;
use diesel::result::Error as SqlError;
use futures_util::future::BoxFuture;
use std::any::Any;
use vault_core::port::StoreError;

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

/// Work with an outcome for its caller.
pub(crate) trait Finished: Sized {
    /// Value for the caller.
    type Outcome;

    /// Returns the outcome. `classify` classifies errors of the database.
    fn outcome(self, classify: fn(&SqlError) -> Severity) -> Result<Self::Outcome, StoreError>;
}

/// Returns the outcome of work that moved to another thread and back.
pub(crate) fn outcome_of<W: Finished + 'static>(
    work: Box<dyn MovedWork>,
    classify: fn(&SqlError) -> Severity,
) -> Result<W::Outcome, StoreError> {
    match work.into_any().downcast::<W>() {
        Ok(work) => work.outcome(classify),
        Err(_) => Err(fault("a transaction came back as another one")),
    }
}

fn kept<T>(outcome: Option<T>) -> Result<T, StoreError> {
    outcome.ok_or_else(|| fault("a transaction was not run"))
}

/// A transaction that writes.
pub(crate) struct Writing<T: Transaction> {
    transaction: T,
    outcome: Option<Result<T::Outcome, Failure>>,
}

impl<T: Transaction> Writing<T> {
    pub(crate) const fn new(transaction: T) -> Self {
        Self { transaction, outcome: None }
    }
}

impl<C: OpenTx + Send, T: Transaction> Work<C> for Writing<T> {
    fn run<'a>(&'a mut self, connection: &'a mut C, kept: &'a Kept) -> BoxFuture<'a, Result<End, Failure>> {
        kept.forget();
        Box::pin(async move {
            let (outcome, end) = run_in(&connection.tx(), &self.transaction).await?;
            self.outcome = Some(outcome);
            Ok(end)
        })
    }
}

impl<T: Transaction> Finished for Writing<T> {
    type Outcome = T::Outcome;

    fn outcome(self, classify: fn(&SqlError) -> Severity) -> Result<T::Outcome, StoreError> {
        kept(self.outcome)?.map_err(|failure| failure.into_store_error(classify))
    }
}

/// A transaction that only reads.
pub(crate) struct Reading<Q: Read> {
    query: Q,
    outcome: Option<Q::Outcome>,
}

impl<Q: Read> Reading<Q> {
    pub(crate) const fn new(query: Q) -> Self {
        Self { query, outcome: None }
    }
}

impl<C: OpenTx + Send, Q: Read> Work<C> for Reading<Q> {
    fn run<'a>(&'a mut self, connection: &'a mut C, _kept: &'a Kept) -> BoxFuture<'a, Result<End, Failure>> {
        Box::pin(async move {
            self.outcome = Some(self.query.read(&connection.tx()).await?);
            Ok(End::Unchanged)
        })
    }
}

impl<Q: Read> Finished for Reading<Q> {
    type Outcome = Q::Outcome;

    fn outcome(self, _classify: fn(&SqlError) -> Severity) -> Result<Q::Outcome, StoreError> {
        kept(self.outcome)
    }
}

/// A function with its input that uses the connection itself.
pub(crate) struct Calling<C, I, T> {
    input: I,
    call: for<'a> fn(&'a mut C, &'a I) -> BoxFuture<'a, Ended<T>>,
    outcome: Option<T>,
}

impl<C, I, T> Calling<C, I, T> {
    pub(crate) fn new(input: I, call: for<'a> fn(&'a mut C, &'a I) -> BoxFuture<'a, Ended<T>>) -> Self {
        Self { input, call, outcome: None }
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

impl<C, I, T> Finished for Calling<C, I, T> {
    type Outcome = T;

    fn outcome(self, _classify: fn(&SqlError) -> Severity) -> Result<T, StoreError> {
        kept(self.outcome)
    }
}
