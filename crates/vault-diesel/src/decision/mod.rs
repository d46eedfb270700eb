//! The ports, and the transactions that are still compiled once per database. The files of this folder name the database only
//! through `backend`, which each database supplies. [`crate::transaction`] has the transactions that are compiled once, and
//! the order of locks.

mod account;
mod activation;
mod audit;
mod credential;
mod inspection;
mod integration;
mod issuers;
mod maintenance;
pub(super) mod organization;
mod receiver;
mod schema_version;

use self::backend::Connection;
use super::backend;
use crate::failure::Failure;
use vault_core::Command;
use vault_core::principal::Principal;

pub(crate) use crate::transaction::{Decided, Verdict};

/// A change that a [`Command`] carries for principals of the type `P`.
pub(crate) trait Decision<P = Principal>: Sized + Sync {
    /// What authorizing found that the change relies on.
    type Held: Send;
    /// What the change comes to.
    type Outcome: Send;

    /// Judges the principal and holds what the decision relies on, in the order of locks.
    fn authorize(
        connection: &mut Connection,
        command: &Command<Self, P>,
    ) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    /// Decides and writes.
    fn act(
        connection: &mut Connection,
        command: &Command<Self, P>,
        held: Self::Held,
    ) -> impl Future<Output = Decided<Self::Outcome>> + Send;
}

/// Makes a decision: judges its principal first and records what was done last, so that no decision can forget either.
pub(crate) async fn decide<P, A: Decision<P>>(
    connection: &mut Connection,
    command: &Command<A, P>,
) -> Decided<A::Outcome> {
    let held = A::authorize(connection, command).await?;
    carry_out(connection, command, held).await
}

/// Carries out, and records, a decision whose principal was judged.
pub(crate) async fn carry_out<P, A: Decision<P>>(
    connection: &mut Connection,
    command: &Command<A, P>,
    held: A::Held,
) -> Decided<A::Outcome> {
    let verdict = A::act(connection, command, held).await?;
    if let Verdict::Done(_) = verdict {
        audit::record(connection, &command.audit).await?;
    }
    Ok(verdict)
}
