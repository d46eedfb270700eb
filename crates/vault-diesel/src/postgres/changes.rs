//! Changes of credentials that share a transaction.

use super::decision::credential::credentials::under_one_key;
use super::decision::credential::versions::{new_metadata, sealing_key};
use super::gather::Gathered;
use super::store::PostgresStore;
use super::together::{Fate, Fates, Judged, Together, carry_out_in_turn, judge_each, of_credentials};
use crate::failure::Failure;
use crate::stored::{IdText, ToIdText as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::sync::Arc;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::port::{ChangeCredential, CredentialChange};

impl Together for Command<ChangeCredential> {
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().changes
    }

    fn organization(&self) -> OrganizationId {
        self.act.organization
    }

    fn size(&self) -> usize {
        match &self.act.change {
            CredentialChange::Replace { version, .. } | CredentialChange::Stage(version) => {
                version.sealed.data.as_bytes().len() + version.sealed.information.as_bytes().len()
            }
            CredentialChange::Promote { .. } | CredentialChange::Destroy(_) | CredentialChange::Describe => 0,
        }
    }

    async fn decide_all(
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
        commands: &[Self],
    ) -> Fates<Self::Outcome> {
        let judged = judge_each(connection, commands, organization, sealing_key).await?;
        hold(connection, organization, commands).await?;
        let hold = |(Command { act, .. }, judged): (&Self, Judged)| match judged {
            Judged::May(key_active) => {
                Ok(key_active && sealing_key(act).is_none_or(|key| under_one_key(key, new_metadata(act))))
            }
            Judged::Denied(denial) => Err(Fate::Denied(denial)),
            Judged::Unknown => Err(Fate::Alone),
        };
        let held = commands.iter().zip(judged).map(hold).collect();
        carry_out_in_turn(connection, commands, held).await
    }
}

/// Takes the credentials. By id, as all take them who take several.
async fn hold(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    commands: &[Command<ChangeCredential>],
) -> Result<(), Failure> {
    let ids: Vec<IdText> = commands.iter().map(|command| command.act.id.text()).collect();
    let rows = of_credentials!(credentials, organization, ids);
    rows.order(crate::schema::credentials::id)
        .select(crate::schema::credentials::id)
        .for_update()
        .execute(connection)
        .await?;
    Ok(())
}
