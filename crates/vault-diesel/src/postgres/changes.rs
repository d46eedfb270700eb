//! Changes of credentials that share a transaction.

use super::decision::credential::versions::{is_under_one_key, sealing_key};
use super::gather::Gathered;
use super::store::PostgresStore;
use super::together::{Fate, Fates, Judged, Together, carry_out_in_turn, hold_revisions, judge_each};
use diesel_async::AsyncPgConnection;
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
        hold_revisions(connection, organization, commands.iter().map(|command| command.act.id)).await?;
        let held = |(command, judged): (&Command<Self>, Judged)| match judged {
            Judged::May(key_active) => Ok(key_active && is_under_one_key(&command.act)),
            Judged::Denied(denial) => Err(Fate::Denied(denial)),
            Judged::Unknown => Err(Fate::Alone),
        };
        carry_out_in_turn(connection, commands, commands.iter().zip(judged).map(held).collect()).await
    }
}
