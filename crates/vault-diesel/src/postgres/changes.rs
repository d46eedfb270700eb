//! Changes of credentials that share a transaction.

use super::decision::credential::versions::{is_under_one_key, sealing_key};
use super::gather::Gathered;
use super::replacements::{Replacement, Replacements};
use super::store::PostgresStore;
use super::together::{Fate, Fates, Judged, Together, carry_out_in_turn, hold, judge_each};
use crate::stored::ToIdText as _;
use diesel_async::AsyncPgConnection;
use std::collections::HashSet;
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
        let rows = hold(connection, organization, commands.iter().map(|command| command.act.id)).await?;
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
