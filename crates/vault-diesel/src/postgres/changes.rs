//! Changes of credentials that share a transaction.

use super::decision::credential::versions::{Current, is_under_one_key, sealing_key};
use super::gather::Gathered;
use super::replacements::{Replacement, Replacements};
use super::store::PostgresStore;
use super::together::{Fate, Fates, Judged, Together, carry_out_in_turn, judge_each, of_credentials};
use crate::failure::Failure;
use crate::schema::credentials;
use crate::stored::{IdText, ToIdText as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::port::{ChangeCredential, CredentialChange};
use vault_core::{Command, Refusal};

impl Together for ChangeCredential {
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().changes
    }

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    fn size(&self) -> usize {
        match &self.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => {
                version.sealed.data.as_bytes().len() + version.sealed.information.as_bytes().len()
            }
            CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => 0,
        }
    }

    async fn decide_all(
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Fates<Result<i64, Refusal>> {
        let judged = judge_each(connection, commands, organization, sealing_key).await?;
        let rows = hold(connection, organization, commands).await?;
        let mut replacements = Replacements::new(organization);
        let mut replaced = HashSet::new();
        let mut held = Vec::with_capacity(commands.len());
        for (command, judged) in commands.iter().zip(judged) {
            let act = &command.act;
            let judged = match judged {
                Judged::May(key_active) => Ok(key_active && is_under_one_key(act)),
                Judged::Denied(denial) => Err(Fate::Denied(denial)),
                Judged::Unknown => Err(Fate::Alone),
            };
            held.push(match (judged, Replacement::of(command)) {
                // A second one of the same credential comes in turn, and finds what this one left.
                (Ok(key_active), Some(replacement)) if !replaced.contains(&act.id) => {
                    let row = rows.get(act.id.text().as_str());
                    let refusal = row.map_or(Some(Refusal::NotFound), |row| row.refusal(act, key_active));
                    Err(Fate::Decided(match refusal {
                        Some(refusal) => Err(refusal),
                        None => {
                            replaced.insert(act.id);
                            Ok(replacements.push(replacement))
                        }
                    }))
                }
                (judged, _) => judged,
            });
        }
        replacements.write(connection).await?;
        let (fates, changed) = carry_out_in_turn(connection, commands, held).await?;
        Ok((fates, changed || !replaced.is_empty()))
    }
}

/// Takes the credentials, to change them, and reads what changes rely on. By id, as all take them who take several.
async fn hold(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    commands: &[Command<ChangeCredential>],
) -> Result<HashMap<String, Current>, Failure> {
    let ids: Vec<IdText> = commands.iter().map(|command| command.act.id.text()).collect();
    let rows: Vec<(String, Current)> = of_credentials!(credentials, organization, ids)
        .order(credentials::id)
        .select((credentials::id, Current::as_select()))
        .for_update()
        .load(connection)
        .await?;
    Ok(rows.into_iter().collect())
}
