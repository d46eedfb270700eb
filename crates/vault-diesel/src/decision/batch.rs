//! Decisions of one kind in one organization that are made together: facts are read for all, the rule decides, effects are
//! written for all. One alone is the case of one.

use super::Answer;
use super::backend::Connection;
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::transaction::authorize::{authorize_and_lock, authorize_and_lock_with_key};
use vault_core::Command;
use vault_core::decision::Outcome;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;

/// A decision that others of its kind in its organization may share a transaction with.
pub(crate) trait Batch: Sized + Send + Sync + 'static {
    /// What it comes to.
    type Outcome: Send + 'static;

    /// Its organization.
    fn organization(&self) -> OrganizationId;

    /// Makes decisions of one organization in the order of locks, and records them. An error is one of the database; then
    /// nothing of them may stand.
    fn decide_all(
        connection: &mut Connection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> impl Future<Output = Result<BatchOutcome<Self::Outcome>, Failure>> + Send;
}

/// What decisions came to.
#[derive(Debug)]
pub(crate) struct BatchOutcome<T> {
    /// The answer to each command, in their order. A failure is that of its own command and leaves the others as they are.
    pub(crate) answers: Vec<Result<T, Failure>>,
    /// Whether anything was written.
    pub(crate) written: bool,
}

/// Authorizes each command, and each principal once, with the key that it brings. Whether that key is active, which stays as
/// it is until the decisions stand; `true` where it brings none. At the latest of the commands' times: who may act then may
/// have acted before.
pub(crate) async fn authorize_each<A: Sync>(
    connection: &mut Connection,
    organization: OrganizationId,
    commands: &[Command<A>],
    key: impl Fn(&A) -> Option<KeyId> + Send + Sync,
) -> Result<Vec<Result<bool, Failure>>, Failure> {
    let now = commands.iter().map(|command| command.now).max().unwrap_or(Timestamp::from_millis(0));
    let mut distinct: Vec<(&Principal, Option<KeyId>)> = Vec::with_capacity(1);
    for command in commands {
        let brought = (&command.principal, key(&command.act));
        if !distinct.contains(&brought) {
            distinct.push(brought);
        }
    }
    // Accounts are taken by id, where several are.
    distinct.sort_by_key(|(principal, _)| match principal {
        Principal::Session(session) => Some((session.account, session.session)),
        Principal::Operator | Principal::Embedder(_) => None,
    });
    let mut authorized = Vec::with_capacity(distinct.len());
    for (principal, key) in &distinct {
        let outcome = match key {
            Some(key) => authorize_and_lock_with_key(&connection.tx(), principal, organization, *key, now).await,
            None => authorize_and_lock(&connection.tx(), principal, now).await.map(|()| true),
        };
        match outcome {
            Err(failure @ (Failure::Sql(_) | Failure::Overtaken)) => return Err(failure),
            outcome => authorized.push(outcome),
        }
    }
    let find = |command: &Command<A>| {
        let brought = (&command.principal, key(&command.act));
        let place = distinct.iter().position(|one| *one == brought);
        match place.and_then(|place| authorized.get(place)) {
            Some(Ok(key_active)) => Ok(*key_active),
            Some(Err(failure)) => Err(failure.repeated()),
            None => Err(Failure::Overtaken),
        }
    };
    Ok(commands.iter().map(find).collect())
}

/// The answer to each command, and the commands that are done.
type Answered<'a, A, T> = (Vec<Result<Answer<T>, Failure>>, Vec<&'a Command<A>>);

/// Puts the outcomes of the commands whose principals may act among those of all. The answer to each, and the commands that
/// are done.
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
        Ok(outcome.into_answer())
    };
    let answers = commands.iter().zip(authorized).map(&mut answer).collect();
    (answers, done)
}
