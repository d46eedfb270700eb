//! Activations of one integration that share transactions: each takes the integration's row, so they would otherwise
//! wait for each other's commit.

use super::decision::{Decided, decide};
use super::gather::Gathered;
use super::store::PostgresStore;
use super::together::{Fates, ONE_BY_ONE, Together, one_after_the_other};
use crate::failure::Failure;
use crate::schema::credentials;
use crate::stored::ToIdText as _;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use vault_core::Refusal;
use vault_core::activation::HandOutRefusal;
use vault_core::id::{IntegrationId, OrganizationId};
use vault_core::port::{ForIntegration, HandOut, TakeCredentials, TakenCredential};

impl Together for ForIntegration<TakeCredentials> {
    type Outcome = Result<Vec<TakenCredential>, Refusal>;
    type Place = (OrganizationId, IntegrationId);

    const MOST: usize = ONE_BY_ONE;

    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().takings
    }

    fn place(&self) -> Self::Place {
        (self.principal.organization, self.principal.integration)
    }

    fn size(&self) -> usize {
        0
    }

    fn decide_alone<'a>(
        connection: &'a mut AsyncPgConnection,
        command: &'a Self,
    ) -> BoxFuture<'a, Decided<Self::Outcome>> {
        Box::pin(decide(connection, command))
    }

    async fn decide_all(connection: &mut AsyncPgConnection, commands: &[Self]) -> Fates<Self::Outcome> {
        one_after_the_other(connection, commands).await
    }
}

impl Together for ForIntegration<HandOut> {
    type Outcome = Option<HandOutRefusal>;
    type Place = (OrganizationId, IntegrationId);

    const MOST: usize = ONE_BY_ONE;

    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>> {
        &store.gathered().hand_outs
    }

    fn place(&self) -> Self::Place {
        (self.principal.organization, self.principal.integration)
    }

    fn size(&self) -> usize {
        0
    }

    fn decide_alone<'a>(
        connection: &'a mut AsyncPgConnection,
        command: &'a Self,
    ) -> BoxFuture<'a, Decided<Self::Outcome>> {
        Box::pin(decide(connection, command))
    }

    async fn decide_all(connection: &mut AsyncPgConnection, commands: &[Self]) -> Fates<Self::Outcome> {
        hold_credentials(connection, commands).await?;
        one_after_the_other(connection, commands).await
    }
}

/// Holds the credentials of all of them, by id as all take them who take several: one after the other they might wait
/// for somebody who waits for them.
async fn hold_credentials(
    connection: &mut AsyncPgConnection,
    commands: &[ForIntegration<HandOut>],
) -> Result<(), Failure> {
    let Some((organization, integration)) = commands.first().map(Together::place) else { return Ok(()) };
    // The integration first, in the order of locks.
    hold_integration(connection, organization, integration).await?;
    let wanted: Vec<_> =
        commands.iter().flat_map(|command| &command.act.credentials).map(|one| one.credential.text()).collect();
    credentials::table
        .filter(credentials::organization_id.eq(organization.text()))
        .filter(credentials::id.eq_any(wanted))
        .order(credentials::id)
        .select(credentials::id)
        .for_share()
        .execute(connection)
        .await?;
    Ok(())
}

async fn hold_integration(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    integration: IntegrationId,
) -> Result<(), Failure> {
    use crate::schema::integrations;
    integrations::table
        .filter(integrations::organization_id.eq(organization.text()))
        .filter(integrations::id.eq(integration.text()))
        .select(integrations::id)
        .for_update()
        .execute(connection)
        .await?;
    Ok(())
}
