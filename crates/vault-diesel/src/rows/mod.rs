//! The rows of operations, for both databases.

mod accounts;
mod activations;
mod audit;
mod authority;
mod checkpoints;
mod counters;
mod credentials;
mod deliveries;
mod entities;
mod erasure;
mod events;
mod expiry;
mod inspection;
pub(crate) mod instance;
mod kept;
mod key_columns;
mod lease;
mod logins;
mod maintenance;
mod namespaces;
mod organizations;
mod sessions;
mod usage;

use entities::lock_all;
pub(crate) use kept::Kept;

use crate::db::{self, OpenTx, Tx};
use crate::failure::Failure;
use crate::schema;
use crate::stored::Column;
use crate::work::{End, Work};
use diesel::QueryDsl as _;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, ready};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::operation;
use vault_core::port::{Reply, Rows, RowsError};

/// The rows of one open transaction.
pub(crate) struct TxRows<'c> {
    tx: Tx<'c>,
    writes: bool,
    kept: &'c Kept,
}

fn failed(failure: Failure) -> RowsError {
    RowsError(Box::new(failure))
}

/// Converts the reply to a statement, without an allocation where it is complete.
fn then<'t, T: Send + 't, U: Send + 't>(
    reply: db::Reply<'t, T>,
    convert: impl FnOnce(T) -> Result<U, Failure> + Send + 't,
) -> Reply<'t, U> {
    match reply {
        Either::Left(now) => {
            Either::Left(ready(now.into_inner().map_err(Failure::Sql).and_then(convert).map_err(failed)))
        }
        Either::Right(later) => {
            Either::Right(later.map(|reply| reply.map_err(Failure::Sql).and_then(convert).map_err(failed)).boxed())
        }
    }
}

/// Converts a future of several statements. It is complete where the statements are.
fn several<'t, T: Send + 't>(future: impl Future<Output = Result<T, Failure>> + Send + 't) -> Reply<'t, T> {
    Either::Right(future.map(|reply| reply.map_err(failed)).boxed())
}

const fn changed_one(rows: usize) -> Result<bool, Failure> {
    Ok(rows == 1)
}

impl Rows for TxRows<'_> {
    fn lock(&self, organization: OrganizationId) -> Reply<'_, ()> {
        self.lock_count(organization)
    }

    fn active_instance_key(&self) -> Reply<'_, Option<KeyId>> {
        let active =
            self.tx.first(db::locked(schema::instance::table.select(schema::instance::instance_key_id), db::KeyShare));
        then(active, |active: Option<Column<KeyId>>| {
            active.map(|active| active.decode("instance", &"unknown", "instance_key_id")).transpose()
        })
    }
}

/// An operation as a transaction of the store.
pub(crate) struct Operating(pub(crate) Box<dyn operation::Work>);

impl Operating {
    /// Runs it with others that keep rows in `kept`, which are written before the transaction ends.
    pub(crate) async fn run_in<'c>(&mut self, tx: Tx<'c>, kept: &'c Kept) -> Result<End, Failure> {
        let rows = TxRows { tx: tx.sharing(&kept.pending), writes: self.0.writes(), kept };
        match self.0.run(&rows).await {
            Ok(operation::End::Commit) => Ok(End::Commit),
            Ok(operation::End::RollBack) if rows.tx.has_written() => Ok(End::RollBack),
            Ok(operation::End::RollBack) => Ok(End::Unchanged),
            // Only the methods above create it.
            Err(RowsError(error)) => Err(error.downcast().map_or(Failure::Overtaken, |failure| *failure)),
        }
    }
}

impl<C: OpenTx + Send> Work<C> for Operating {
    fn run<'a>(&'a mut self, connection: &'a mut C, kept: &'a Kept) -> BoxFuture<'a, Result<End, Failure>> {
        Box::pin(self.run_in(connection.tx(), kept))
    }
}
