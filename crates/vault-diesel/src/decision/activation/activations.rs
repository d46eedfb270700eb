//! Activations.

use super::super::backend::{Connection, RunQuery, Store, narrow};
use super::super::{Decided, Verdict, audit};
use super::activator::{judge, judge_and_take};
use super::take;
use crate::failure::Failure;
use crate::schema::activations;
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::activation::{Activation, VendMode};
use vault_core::id::ActivationId;
use vault_core::integration::{IntegrationPrincipal, PrincipalStale};
use vault_core::namespace::Namespace;
use vault_core::port::{
    AbortActivation, ActivationRepository, EndActivation, ListActivations, StoreError, TakeCredentials, TakeOutcome,
};
use vault_core::time::Timestamp;

#[async_trait]
impl ActivationRepository for Store {
    async fn take_credentials(&self, command: TakeCredentials) -> Result<TakeOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(take::take(connection, command))).await
    }

    async fn list_activations(
        &self,
        query: ListActivations,
    ) -> Result<Result<Vec<Activation>, PrincipalStale>, StoreError> {
        self.read(query, |connection, query| Box::pin(list(connection, query))).await
    }

    async fn end_activation(&self, command: EndActivation) -> Result<Result<bool, PrincipalStale>, StoreError> {
        self.write(command, |connection, command| Box::pin(end(connection, command))).await
    }

    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError> {
        self.write(command, |connection, command| Box::pin(abort(connection, command))).await
    }
}

/// The live activations of an integration.
macro_rules! live_of {
    ($principal:expr, $now:expr) => {
        activations::table
            .filter(activations::organization_id.eq($principal.organization.text()))
            .filter(narrow!(activations::integration_id.eq($principal.integration.text())))
            .filter(activations::expires_at.gt($now.as_millis()))
    };
}

pub(crate) use live_of;

type ActivationRow = (Read<ActivationId>, Read<Namespace>, Read<VendMode>, i64, i64, i64);

fn decode(principal: &IntegrationPrincipal, row: ActivationRow) -> Result<Activation, Failure> {
    const TABLE: &str = "activations";
    let (id, namespace, vend, credentials, begun_at, expires_at) = row;
    let id = id.sound(TABLE, &"unknown", "id")?;
    Ok(Activation {
        id,
        organization: principal.organization,
        integration: principal.integration,
        namespace: namespace.sound(TABLE, &id, "namespace")?,
        vend: vend.sound(TABLE, &id, "vend")?,
        credentials: u32::try_from(credentials).map_err(|_| Failure::damaged(TABLE, id.to_string(), "credentials"))?,
        begun_at: Timestamp::from_millis(begun_at),
        expires_at: Timestamp::from_millis(expires_at),
    })
}

async fn list(
    connection: &mut Connection,
    query: &ListActivations,
) -> Result<Result<Vec<Activation>, PrincipalStale>, Failure> {
    if let Err(stale) = judge(connection, &query.principal, query.now).await? {
        return Ok(Err(stale));
    }
    let rows: Vec<ActivationRow> = live_of!(query.principal, query.now)
        .order((activations::begun_at.desc(), activations::id))
        .select((
            activations::id,
            activations::namespace,
            activations::vend,
            activations::credentials,
            activations::begun_at,
            activations::expires_at,
        ))
        .load(connection)
        .await?;
    Ok(Ok(rows.into_iter().map(|row| decode(&query.principal, row)).collect::<Result<_, _>>()?))
}

async fn end(connection: &mut Connection, command: &EndActivation) -> Decided<Result<bool, PrincipalStale>> {
    let EndActivation { principal, activation, now, audit: entry } = command;
    if let Err(stale) = judge_and_take(connection, principal, *now).await? {
        return Ok(Verdict::Undo(Err(stale)));
    }
    let ended = diesel::delete(
        activations::table
            .filter(activations::organization_id.eq(principal.organization.text()))
            .filter(activations::id.eq(activation.text()))
            .filter(activations::integration_id.eq(principal.integration.text()))
            .filter(activations::expires_at.gt(now.as_millis())),
    )
    .execute(connection)
    .await?;
    if ended == 0 {
        return Ok(Verdict::Undo(Ok(false)));
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(Ok(true)))
}

async fn abort(connection: &mut Connection, command: &AbortActivation) -> Decided<()> {
    let AbortActivation { organization, activation, audit: entry } = command;
    diesel::delete(
        activations::table
            .filter(activations::organization_id.eq(organization.text()))
            .filter(activations::id.eq(activation.text())),
    )
    .execute(connection)
    .await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(()))
}
