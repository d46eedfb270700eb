//! Changes of credentials.

use super::super::batch::{Batch, BatchOutcome, authorize_each};
use super::apply::{Change, write_changes};
use super::save::earlier;
use crate::db::{Db, Tx, Update, locked};
use crate::failure::Failure;
use crate::new_row::NewClaim;
use crate::schema::{credentials, idempotency_keys};
use crate::stored::{AnyId, Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use std::collections::{HashMap, HashSet};
use vault_core::decision::{Authorized, ChangeFacts, CredentialFacts, Outcome, decide_changes};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{ChangeCredential, Idempotency};
use vault_core::{Command, Refusal};

/// The columns of a credential that a change depends on.
#[derive(Queryable, Selectable)]
#[diesel(table_name = credentials, check_for_backend(Db))]
pub(super) struct Current {
    pub(super) version: i64,
    pub(super) revision: i64,
    staged_version: Option<i64>,
    pub(super) previous_version: Option<i64>,
    highest_version: i64,
    pub(super) key_id: AnyId,
    pub(super) expires_at: i64,
    metadata_key_id: Option<Column<KeyId>>,
}

impl Current {
    /// The facts for the rule.
    fn facts(&self, id: CredentialId) -> Result<CredentialFacts, Failure> {
        let metadata_key = self.metadata_key_id.clone();
        Ok(CredentialFacts {
            revision: self.revision,
            version: self.version,
            staged: self.staged_version,
            highest: self.highest_version,
            metadata_key: metadata_key.map(|key| key.decode("credentials", &id, "metadata_key_id")).transpose()?,
        })
    }
}

impl Batch for ChangeCredential {
    type Outcome = i64;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        tx: &Tx<'_>,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Result<BatchOutcome<i64>, Failure> {
        let authorized = authorize_each(tx, organization, commands, Self::sealing_key).await?;
        let mut all: Vec<_> = authorized.into_iter().map(|authorized| authorized.map(State::Open)).collect();
        let mut written = false;
        // If several changes concern one credential, each reads the row that the previous one has written.
        loop {
            let mut ids = HashSet::new();
            let is_next = |(command, state): (&Command<Self>, &Result<State, Failure>)| {
                matches!(state, Ok(State::Open(_))) && ids.insert(command.payload.id)
            };
            let next: Vec<bool> = commands.iter().zip(&all).map(is_next).collect();
            if !next.contains(&true) {
                break;
            }
            let round = commands.iter().zip(&all).zip(&next).filter_map(|((command, state), next)| match state {
                Ok(State::Open(key_active)) if *next => Some(Authorized { command, key_active: *key_active }),
                _ => None,
            });
            let answers = decide_different(tx, organization, round.collect(), &mut written).await?;
            let places = all.iter_mut().zip(next).filter(|(_, next)| *next);
            for ((place, _), answer) in places.zip(answers) {
                *place = Ok(State::Decided(answer));
            }
        }
        let answer = |state: Result<State, Failure>| match state? {
            State::Decided(answer) => Ok(answer?),
            State::Open(_) => Err(Failure::Overtaken),
        };
        Ok(BatchOutcome { answers: all.into_iter().map(answer).collect(), written })
    }
}

/// An authorized change.
enum State {
    /// Not decided yet. Whether its key is active.
    Open(bool),
    /// Decided.
    Decided(Result<i64, Refusal>),
}

/// Decides and writes changes of different credentials.
async fn decide_different(
    tx: &Tx<'_>,
    organization: OrganizationId,
    changes: Vec<Authorized<'_, ChangeCredential>>,
    written: &mut bool,
) -> Result<Vec<Result<i64, Refusal>>, Failure> {
    let commands: Vec<_> = changes.iter().map(|change| change.command).collect();
    let rows = lock_credentials(tx, organization, commands.iter().map(|command| command.payload.id)).await?;
    let keys: Vec<&Idempotency> = commands.iter().copied().filter_map(idempotency).collect();
    let facts = ChangeFacts {
        credentials: rows.iter().map(|(id, row)| Ok((*id, row.facts(*id)?))).collect::<Result<_, Failure>>()?,
        earlier: earlier(tx, organization, &keys).await?,
    };
    let mut done = Vec::with_capacity(commands.len());
    let mut claims = Vec::new();
    let mut answers = Vec::with_capacity(commands.len());
    for (command, outcome) in commands.iter().copied().zip(decide_changes(facts, changes)) {
        answers.push(match (outcome, rows.get(&command.payload.id)) {
            (Outcome::Done { answer, effects }, Some(row)) => {
                if let Some(idempotency) = idempotency(command) {
                    claims.push(NewClaim::of(organization, (command.payload.id, answer), idempotency, command.now));
                }
                done.push(Change { command, effects, row });
                Ok(answer)
            }
            (outcome, _) => outcome.into_answer(),
        });
    }
    write_changes(tx, &done).await?;
    tx.insert(idempotency_keys::table, claims).await?;
    *written |= !done.is_empty();
    Ok(answers)
}

fn idempotency(command: &Command<ChangeCredential>) -> Option<&Idempotency> {
    command.payload.new_version()?.idempotency.as_ref()
}

/// Locks credentials, by id like every transaction that locks several.
pub(super) async fn lock_credentials(
    tx: &Tx<'_>,
    organization: OrganizationId,
    ids: impl Iterator<Item = CredentialId> + Send,
) -> Result<HashMap<CredentialId, Current>, Failure> {
    let ids: Vec<_> = ids.map(|id| id.stored()).collect();
    let rows = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(credentials::id.eq_any(ids))
        .order(credentials::id)
        .select((credentials::id, Current::as_select()));
    let rows: Vec<(Column<CredentialId>, Current)> = tx.load(locked(rows, Update)).await?;
    rows.into_iter().map(|(id, row)| Ok((id.decode("credentials", &organization, "id")?, row))).collect()
}
