//! Changes of credentials.

use super::super::Answer;
use super::super::backend::{Connection, RunQuery, insert_rows, load_credentials, write_changes};
use super::super::batch::{Batch, BatchOutcome, authorize_each};
use super::save::earlier;
use super::versions::{Change, Current};
use crate::failure::Failure;
use crate::new_row::NewClaim;
use crate::schema::credentials;
use crate::stored::Column;
use diesel::SelectableHelper as _;
use std::collections::{HashMap, HashSet};
use vault_core::Command;
use vault_core::decision::{Authorized, ChangeFacts, Outcome, judge_changes};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{ChangeCredential, Idempotency};

impl Batch for ChangeCredential {
    type Outcome = Answer<i64>;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        connection: &mut Connection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Result<BatchOutcome<Answer<i64>>, Failure> {
        let authorized = authorize_each(connection, organization, commands, Self::sealing_key).await?;
        let mut all: Vec<_> = authorized.into_iter().map(|authorized| authorized.map(State::Open)).collect();
        let mut written = false;
        // Of several changes of one credential, each finds the row that the one before has written.
        loop {
            let mut ids = HashSet::new();
            let is_next = |(command, state): (&Command<Self>, &Result<State, Failure>)| {
                matches!(state, Ok(State::Open(_))) && ids.insert(command.act.id)
            };
            let next: Vec<bool> = commands.iter().zip(&all).map(is_next).collect();
            if !next.contains(&true) {
                break;
            }
            let round = commands.iter().zip(&all).zip(&next).filter_map(|((command, state), next)| match state {
                Ok(State::Open(key_active)) if *next => Some(Authorized { command, key_active: *key_active }),
                _ => None,
            });
            let answers = decide_different(connection, organization, round.collect(), &mut written).await?;
            let places = all.iter_mut().zip(next).filter(|(_, next)| *next);
            for ((place, _), answer) in places.zip(answers) {
                *place = Ok(State::Decided(answer));
            }
        }
        let answer = |state: Result<State, Failure>| match state? {
            State::Decided(answer) => Ok(answer),
            State::Open(_) => Err(Failure::Overtaken),
        };
        Ok(BatchOutcome { answers: all.into_iter().map(answer).collect(), written })
    }
}

/// An authorized change.
enum State {
    /// It is not decided yet. Whether its key is active.
    Open(bool),
    /// It is decided.
    Decided(Answer<i64>),
}

/// Decides and writes changes of different credentials.
async fn decide_different(
    connection: &mut Connection,
    organization: OrganizationId,
    changes: Vec<Authorized<'_, ChangeCredential>>,
    written: &mut bool,
) -> Result<Vec<Answer<i64>>, Failure> {
    let commands: Vec<_> = changes.iter().map(|change| change.command).collect();
    let rows = load(connection, organization, &commands).await?;
    let keys: Vec<&Idempotency> = commands.iter().copied().filter_map(idempotency).collect();
    let facts = ChangeFacts {
        credentials: rows.iter().map(|(id, row)| Ok((*id, row.facts(*id)?))).collect::<Result<_, Failure>>()?,
        earlier: earlier(connection, organization, &keys).await?,
    };
    let mut done = Vec::with_capacity(commands.len());
    let mut claims = Vec::new();
    let mut answers = Vec::with_capacity(commands.len());
    for (command, outcome) in commands.iter().copied().zip(judge_changes(facts, changes)) {
        answers.push(match (outcome, rows.get(&command.act.id)) {
            (Outcome::Done { answer, effects }, Some(row)) => {
                if let Some(idempotency) = idempotency(command) {
                    claims.push(NewClaim::of(organization, (command.act.id, answer), idempotency, command.now));
                }
                done.push(Change { command, effects, row });
                Ok(answer)
            }
            (outcome, _) => outcome.into_answer(),
        });
    }
    write_changes(connection, &done).await?;
    insert_rows!(connection, idempotency_keys, NewClaims, claims.into_iter())?;
    *written |= !done.is_empty();
    Ok(answers)
}

fn idempotency(command: &Command<ChangeCredential>) -> Option<&Idempotency> {
    command.act.new_version()?.idempotency.as_ref()
}

/// Takes the rows of the credentials, to change them.
async fn load(
    connection: &mut Connection,
    organization: OrganizationId,
    commands: &[&Command<ChangeCredential>],
) -> Result<HashMap<CredentialId, Current>, Failure> {
    let ids: Vec<CredentialId> = commands.iter().map(|command| command.act.id).collect();
    let rows: Vec<(Column<CredentialId>, Current)> =
        load_credentials!(connection, organization, &ids, (credentials::id, Current::as_select()))?;
    rows.into_iter().map(|(id, row)| Ok((id.decode("credentials", &organization, "id")?, row))).collect()
}
