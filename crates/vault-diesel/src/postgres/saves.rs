//! Saves that share a transaction.

use super::backend::together;
use super::decision::credential::count;
use super::decision::credential::credentials::{Earlier, Room, repeated, under_one_key};
use super::gather::Gathered;
use super::store::PostgresStore;
use super::together::{Fate, Fates, Judged, Together, judge_each};
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewClaims, NewCredential, NewCredentials, NewEntries, NewEntry, NewLabel, NewLabels};
use crate::new_row::{NewSecret, NewSecrets};
use crate::schema::idempotency_keys;
use crate::stored::ToIdText as _;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::Text;
use diesel::{ExpressionMethods as _, QueryDsl as _, QueryResult};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vault_core::Command;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{Idempotency, SaveCredential};

type Outcome = Result<CredentialId, vault_core::Refusal>;

impl Together for SaveCredential {
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().saves
    }

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    fn size(&self) -> usize {
        let SaveCredential { sealed, description, .. } = self;
        let metadata = description.metadata.as_ref().map_or(0, |metadata| metadata.blob.as_bytes().len());
        sealed.data.as_bytes().len() + sealed.information.as_bytes().len() + metadata
    }

    async fn decide_all(
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Fates<Outcome> {
        // The count first, for the reason given at a single save.
        let credentials = count::hold(connection, organization).await?;
        let judged = judge_each(connection, commands, organization, |save| Some(save.sealed.key)).await?;
        let mut saves = Saves::new(commands, credentials, &judged);
        saves.claim(connection, organization).await?;
        let written = saves.write(connection, organization).await?;
        Ok((saves.into_fates(), written))
    }
}

/// Saves on their way. One that has no fate yet is made.
struct Saves<'a> {
    commands: &'a [Command<SaveCredential>],
    fates: Vec<Option<Fate<Outcome>>>,
}

/// What tells idempotency keys of one organization apart.
fn named(idempotency: &Idempotency) -> (String, &str) {
    (idempotency.account.to_string(), idempotency.key.as_str())
}

impl<'a> Saves<'a> {
    /// Decides all that can be decided by what is held.
    fn new(commands: &'a [Command<SaveCredential>], credentials: Option<i64>, judged: &[Judged]) -> Self {
        let mut made = 0;
        let mut keys = HashSet::new();
        let judge = |(command, judged): (&'a Command<SaveCredential>, &Judged)| {
            let save = &command.act;
            let key_active = match *judged {
                Judged::May(key_active) => key_active,
                Judged::Denied(denial) => return Some(Fate::Denied(denial)),
                Judged::Unknown => return Some(Fate::Alone),
            };
            let key_active = key_active && under_one_key(save.sealed.key, save.description.metadata.as_ref());
            if let Some(refusal) = (Room { credentials, key_active }).refusal(save, made) {
                return Some(Fate::Decided(Err(refusal)));
            }
            if save.idempotency.as_ref().is_some_and(|idempotency| !keys.insert(named(idempotency))) {
                return Some(Fate::Again);
            }
            made += 1;
            None
        };
        let fates = commands.iter().zip(judged).map(judge).collect();
        Self { commands, fates }
    }

    /// Takes the idempotency keys of all that are made. Whoever's key was taken before is answered as then, whatever has
    /// changed since; so is who is refused.
    async fn claim(&mut self, connection: &mut AsyncPgConnection, organization: OrganizationId) -> Result<(), Failure> {
        let claims: Vec<_> = self.made().filter_map(claim).collect();
        let taken: HashSet<(String, String)> = match claims.is_empty() {
            true => HashSet::new(),
            false => Claims(claims.into_iter().collect()).load(connection).await?.into_iter().collect(),
        };
        let is_taken = |idempotency: &Idempotency| {
            let (account, key) = named(idempotency);
            taken.contains(&(account, key.to_owned()))
        };
        let repeats: Vec<(usize, &Idempotency)> = self
            .commands
            .iter()
            .zip(&self.fates)
            .enumerate()
            .filter_map(|(place, (command, fate))| {
                let idempotency = command.act.idempotency.as_ref()?;
                let refused = match fate {
                    None => !is_taken(idempotency),
                    Some(Fate::Decided(_)) => true,
                    Some(Fate::Denied(_) | Fate::Again | Fate::Alone) => false,
                };
                refused.then_some((place, idempotency))
            })
            .collect();
        if repeats.is_empty() {
            return Ok(());
        }
        let mut room_is_left = false;
        let earlier = find_earlier(connection, organization, &repeats).await?;
        for (place, idempotency) in repeats {
            let Some(fate) = self.fates.get_mut(place) else { continue };
            room_is_left |= fate.is_none();
            let (account, key) = named(idempotency);
            match earlier.get(&(account, key.to_owned())) {
                Some(row) => {
                    let answer = repeated(row.clone(), idempotency);
                    *fate = Some(answer.map_or(Fate::Alone, |answer| Fate::Decided(answer.map(|(id, _)| id))));
                }
                // Taken, and gone since.
                None if fate.is_none() => *fate = Some(Fate::Again),
                None => {}
            }
        }
        // Whoever found no room left, because room was kept for these, may find it now.
        if room_is_left {
            for (fate, command) in self.fates.iter_mut().zip(self.commands) {
                if matches!(fate, Some(Fate::Decided(Err(refusal))) if *refusal == command.act.limit_reached()) {
                    *fate = Some(Fate::Again);
                }
            }
        }
        Ok(())
    }

    /// Those that are made.
    fn made(&self) -> impl Iterator<Item = &'a Command<SaveCredential>> {
        self.commands.iter().zip(&self.fates).filter(|(_, fate)| fate.is_none()).map(|(command, _)| command)
    }

    /// Writes what is made, and records it. Whether there is anything.
    async fn write(&self, connection: &AsyncPgConnection, organization: OrganizationId) -> Result<bool, Failure> {
        let made = self.made().count();
        if made == 0 {
            return Ok(false);
        }
        let credentials: NewCredentials<'_> =
            self.made().map(|command| NewCredential::of(&command.act, command.now)).collect();
        let secrets: NewSecrets<'_> = self.made().map(|command| NewSecret::of(&command.act)).collect();
        let entries: NewEntries<'_> = self.made().map(|command| NewEntry::of(&command.audit)).collect();
        let labels: Vec<_> = self
            .made()
            .flat_map(|Command { act, .. }| {
                act.description.labels.iter().map(|label| NewLabel::of(act.organization, act.id, label))
            })
            .collect();
        let counted = count::add(organization, i64::try_from(made).unwrap_or(i64::MAX));
        together!(
            connection,
            |own| credentials.execute(own).await,
            |own| secrets.execute(own).await,
            |own| match labels.is_empty() {
                true => Ok(0),
                false => labels.into_iter().collect::<NewLabels<'_>>().execute(own).await,
            },
            |own| counted.execute(own).await,
            |own| entries.execute(own).await
        )?;
        Ok(true)
    }

    fn into_fates(self) -> Vec<Fate<Outcome>> {
        let made =
            |(fate, command): (Option<_>, &Command<SaveCredential>)| fate.unwrap_or(Fate::Decided(Ok(command.act.id)));
        self.fates.into_iter().zip(self.commands).map(made).collect()
    }
}

fn claim(command: &Command<SaveCredential>) -> Option<NewClaim<'_>> {
    let save = &command.act;
    let idempotency = save.idempotency.as_ref()?;
    Some(NewClaim::of(save.organization, (save.id, save.version), idempotency, command.now))
}

/// Takes keys, and names those that it took.
struct Claims<'a>(NewClaims<'a>);

impl QueryId for Claims<'_> {
    type QueryId = Claims<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for Claims<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(out.reborrow())?;
        out.push_sql(" ON CONFLICT DO NOTHING RETURNING account_id, key");
        Ok(())
    }
}

impl Query for Claims<'_> {
    type SqlType = (Text, Text);
}

/// What is stored under the keys, by account and key.
async fn find_earlier(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    repeats: &[(usize, &Idempotency)],
) -> Result<HashMap<(String, String), Earlier>, Failure> {
    let accounts: Vec<_> = repeats.iter().map(|(_, idempotency)| idempotency.account.text()).collect();
    let keys: Vec<&str> = repeats.iter().map(|(_, idempotency)| idempotency.key.as_str()).collect();
    let rows: Vec<((String, String), Earlier)> = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization.text()))
        .filter(idempotency_keys::account_id.eq_any(accounts))
        .filter(idempotency_keys::key.eq_any(keys))
        .select((
            (idempotency_keys::account_id, idempotency_keys::key),
            (idempotency_keys::body, idempotency_keys::credential_id, idempotency_keys::version),
        ))
        .load(connection)
        .await?;
    Ok(rows.into_iter().collect())
}
