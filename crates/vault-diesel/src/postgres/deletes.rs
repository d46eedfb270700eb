//! Deletes that share a transaction.

use super::backend::together;
use super::decision::credential::count;
use super::decision::execute_together;
use super::gather::Gathered;
use super::store::PostgresStore;
use super::together::{Fate, Fates, Judged, Together, hold, judge_each, of_credentials};
use crate::failure::Failure;
use crate::new_row::{NewEntries, NewEntry};
use crate::schema::credentials;
use crate::stored::{IdText, ToIdText as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::DeleteCredential;
use vault_core::{Command, Refusal};

type Outcome = Result<bool, Refusal>;

impl Together for DeleteCredential {
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().deletes
    }

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Fates<Outcome> {
        // The count first, for the reason given at a single save.
        count::hold(connection, organization).await?;
        let judged = judge_each(connection, commands, organization, |_| None).await?;
        // If one of the commands names one.
        let rows = match commands.iter().any(|command| command.act.revision.is_some()) {
            true => hold(connection, organization, commands.iter().map(|command| command.act.id)).await?,
            false => HashMap::new(),
        };
        let mut wanted = HashSet::new();
        let mut fates: Vec<Option<Fate<Outcome>>> = Vec::with_capacity(commands.len());
        for (command, judged) in commands.iter().zip(judged) {
            let DeleteCredential { id, revision, .. } = command.act;
            let found = rows.get(id.text().as_str());
            fates.push(match judged {
                Judged::Denied(denial) => Some(Fate::Denied(denial)),
                Judged::Unknown => Some(Fate::Alone),
                // One before has deleted it.
                Judged::May(_) if wanted.contains(&id) => Some(Fate::Decided(Ok(false))),
                Judged::May(_)
                    if found.is_some_and(|found| revision.is_some_and(|revision| found.revision != revision)) =>
                {
                    Some(Fate::Decided(Err(Refusal::Changed)))
                }
                Judged::May(_) => {
                    wanted.insert(id);
                    None
                }
            });
        }
        let deleted = delete(connection, &wanted, organization).await?;
        let is_deleted = |command: &Command<Self>| deleted.contains(command.act.id.text().as_str());
        let made = || commands.iter().zip(&fates).filter(|(command, fate)| fate.is_none() && is_deleted(command));
        if !deleted.is_empty() {
            let entries = made().map(|(command, _)| NewEntry::of(&command.audit)).collect();
            forget(connection, &deleted, organization, entries).await?;
        }
        let fate = |(fate, command): (Option<_>, &Command<Self>)| {
            fate.unwrap_or_else(|| Fate::Decided(Ok(is_deleted(command))))
        };
        Ok((fates.into_iter().zip(commands).map(fate).collect(), !deleted.is_empty()))
    }
}

/// Deletes the rows that show them. The ids of those that were there.
async fn delete(
    connection: &mut AsyncPgConnection,
    wanted: &HashSet<CredentialId>,
    organization: OrganizationId,
) -> Result<HashSet<String>, Failure> {
    if wanted.is_empty() {
        return Ok(HashSet::new());
    }
    let mut ids: Vec<IdText> = wanted.iter().map(|id| id.text()).collect();
    ids.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    let deleted: Vec<String> = diesel::delete(of_credentials!(credentials, organization, ids))
        .returning(credentials::id)
        .get_results(connection)
        .await?;
    Ok(deleted.into_iter().collect())
}

/// Deletes everything else of them, counts and records, in one exchange.
async fn forget(
    connection: &AsyncPgConnection,
    deleted: &HashSet<String>,
    organization: OrganizationId,
    entries: NewEntries<'_>,
) -> Result<(), Failure> {
    let ids = || deleted.iter().map(String::as_str).collect::<Vec<_>>();
    let counted = count::add(organization, i64::try_from(deleted.len()).map_or(i64::MIN, |count| -count));
    execute_together!(
        connection,
        diesel::delete(of_credentials!(credential_secrets, organization, ids())),
        diesel::delete(of_credentials!(credential_versions, organization, ids())),
        diesel::delete(of_credentials!(credential_labels, organization, ids())),
        diesel::delete(of_credentials!(credential_uses, organization, ids())),
        diesel::delete(of_credentials!(check_requests, organization, ids())),
        counted,
        entries
    )?;
    Ok(())
}
