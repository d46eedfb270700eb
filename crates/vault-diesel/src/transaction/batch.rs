//! Commands of one kind in one organization that share a transaction: facts are read for all, the rule decides, effects are
//! written for all.

use super::authorize::{authorize_and_lock, authorize_and_lock_with_key};
use super::{End, Ended};
use crate::db::Tx;
use crate::failure::Failure;
use vault_core::Command;
use vault_core::decision::Outcome;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;

/// A command that may share a transaction with others of its kind in its organization.
pub(crate) trait Batch: Sized + Send + Sync + 'static {
    /// What it returns.
    type Outcome: Send + 'static;

    /// Its organization.
    fn organization(&self) -> OrganizationId;

    /// Runs commands of one organization in the order of locks, and records them. An error is one of the database: then none
    /// of them may commit.
    fn decide_all(
        tx: &Tx<'_>,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> impl Future<Output = Result<BatchOutcome<Self::Outcome>, Failure>> + Send;
}

/// The outcome of commands that share a transaction.
#[derive(Debug)]
pub(crate) struct BatchOutcome<T> {
    /// The answer to each command, in their order. A failure concerns its own command only.
    pub(crate) answers: Vec<Result<T, Failure>>,
    /// Whether anything was written.
    pub(crate) written: bool,
}

/// Runs one command as a batch of one.
pub(super) async fn run_one<A: Batch>(tx: &Tx<'_>, command: &Command<A>) -> Ended<Result<A::Outcome, Failure>> {
    let BatchOutcome { answers, written } =
        A::decide_all(tx, command.payload.organization(), std::slice::from_ref(command)).await?;
    match answers.into_iter().next().unwrap_or(Err(Failure::Overtaken)) {
        Err(failure) if !matches!(failure, Failure::Denied(_) | Failure::Refused(_)) => Err(failure),
        answer => Ok((answer, if written { End::Commit } else { End::Unchanged })),
    }
}

/// Authorizes each command, and each principal once, with the key of the command. Returns whether the key is active,
/// which it then stays until the transaction ends, or `true` if the command has no key. The time is the latest of the
/// commands: a principal that is authorized then was authorized before.
pub(crate) async fn authorize_each<A: Sync>(
    tx: &Tx<'_>,
    organization: OrganizationId,
    commands: &[Command<A>],
    key: impl Fn(&A) -> Option<KeyId> + Send + Sync,
) -> Result<Vec<Result<bool, Failure>>, Failure> {
    let now = commands.iter().map(|command| command.now).max().unwrap_or(Timestamp::from_millis(0));
    let mut distinct: Vec<(&Principal, Option<KeyId>)> = Vec::with_capacity(1);
    for command in commands {
        let presented = (&command.principal, key(&command.payload));
        if !distinct.contains(&presented) {
            distinct.push(presented);
        }
    }
    // Several accounts are locked by id.
    distinct.sort_by_key(|(principal, _)| match principal {
        Principal::Session(session) => Some((session.account, session.session)),
        Principal::Operator | Principal::Embedder(_) => None,
    });
    let mut authorized = Vec::with_capacity(distinct.len());
    for (principal, key) in &distinct {
        let outcome = match key {
            Some(key) => authorize_and_lock_with_key(tx, principal, organization, *key, now).await,
            None => authorize_and_lock(tx, principal, now).await.map(|()| true),
        };
        match outcome {
            Err(failure @ (Failure::Sql(_) | Failure::Overtaken)) => return Err(failure),
            outcome => authorized.push(outcome),
        }
    }
    let find = |command: &Command<A>| {
        let presented = (&command.principal, key(&command.payload));
        let place = distinct.iter().position(|one| *one == presented);
        match place.and_then(|place| authorized.get(place)) {
            Some(Ok(key_active)) => Ok(*key_active),
            Some(Err(failure)) => Err(failure.repeated()),
            None => Err(Failure::Overtaken),
        }
    };
    Ok(commands.iter().map(find).collect())
}

/// The answer to each command, and the commands that are done.
type Answered<'a, A, T> = (Vec<Result<T, Failure>>, Vec<&'a Command<A>>);

/// Merges the outcomes of the authorized commands into those of all. Returns the answer to each, and the commands that are done.
pub(crate) fn answer_each<A, T>(
    commands: &[Command<A>],
    authorized: Vec<Result<bool, Failure>>,
    outcomes: Vec<Outcome<T>>,
) -> Answered<'_, A, T> {
    let mut outcomes = outcomes.into_iter();
    let mut done = Vec::with_capacity(commands.len());
    let mut answer = |(command, authorized): (_, Result<bool, Failure>)| {
        let outcome = authorized.and_then(|_| outcomes.next().ok_or(Failure::Overtaken))?;
        if outcome.effects().is_some() {
            done.push(command);
        }
        Ok(outcome.into_answer()?)
    };
    let answers = commands.iter().zip(authorized).map(&mut answer).collect();
    (answers, done)
}
