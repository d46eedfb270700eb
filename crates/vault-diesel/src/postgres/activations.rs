//! Activations of one integration that share a transaction: all of them take its row.

use super::decision::activation::activator::{Judgement, judge_and_take};
use super::gather::Gathered;
use super::store::PostgresStore;
use super::together::{Fate, Fates, Group, Together, carry_out_in_turn, of_credentials};
use crate::failure::Failure;
use crate::stored::{IdText, ToIdText as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::sync::Arc;
use vault_core::id::OrganizationId;
use vault_core::integration::IntegrationPrincipal;
use vault_core::port::{ForIntegration, HandOut, TakeCredentials};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

/// The activations of one integration.
fn group_of(principal: &IntegrationPrincipal) -> Group {
    Group { organization: principal.organization, integration: Some(principal.integration) }
}

impl Together for ForIntegration<TakeCredentials> {
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().takings
    }

    fn group(&self) -> Group {
        group_of(&self.principal)
    }

    async fn decide_all(connection: &mut AsyncPgConnection, _group: Group, commands: &[Self]) -> Fates<Self::Outcome> {
        let judged = judge_each(connection, commands).await?;
        let denied = |refusal| Fate::Denied(Denial::Integration(refusal));
        let held = judged.into_iter().map(|judged| judged.map_err(denied)).collect();
        carry_out_in_turn(connection, commands, held).await
    }
}

impl Together for ForIntegration<HandOut> {
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().hand_outs
    }

    fn group(&self) -> Group {
        group_of(&self.principal)
    }

    async fn decide_all(connection: &mut AsyncPgConnection, group: Group, commands: &[Self]) -> Fates<Self::Outcome> {
        let judged = judge_each(connection, commands).await?;
        hold_credentials(connection, group.organization, commands).await?;
        // A refusal is recorded, and so decided one by one.
        let held = judged.into_iter().map(|judged| Ok(judged.map(drop))).collect();
        carry_out_in_turn(connection, commands, held).await
    }
}

/// Judges each principal once, at the latest of the commands' times: who may act then may have acted before.
async fn judge_each<A: Sync>(
    connection: &mut AsyncPgConnection,
    commands: &[ForIntegration<A>],
) -> Result<Vec<Judgement>, Failure> {
    let now = commands.iter().map(|command| command.now).max().unwrap_or(Timestamp::from_millis(0));
    let mut different: Vec<(&IntegrationPrincipal, Judgement)> = Vec::new();
    let mut judged = Vec::with_capacity(commands.len());
    for ForIntegration { principal, .. } in commands {
        let known = different.iter().find(|(other, _)| *other == principal).map(|(_, judgement)| *judgement);
        judged.push(match known {
            Some(judgement) => judgement,
            None => {
                let judgement = judge_and_take(connection, principal, now).await?;
                different.push((principal, judgement));
                judgement
            }
        });
    }
    Ok(judged)
}

/// Keeps the credentials from being changed. By id, as all take them who take several.
async fn hold_credentials(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    commands: &[ForIntegration<HandOut>],
) -> Result<(), Failure> {
    let ids: Vec<IdText> =
        commands.iter().flat_map(|command| &command.act.credentials).map(|one| one.credential.text()).collect();
    let rows = of_credentials!(credentials, organization, ids);
    rows.order(crate::schema::credentials::id)
        .select(crate::schema::credentials::id)
        .for_share()
        .execute(connection)
        .await?;
    Ok(())
}
