//! Activations.

use super::super::backend::{Connection, RunQuery, Store, load_page, narrow};
use super::super::credential::checks;
use super::super::integration::lookup;
use super::super::{Decided, Decision, Verdict, audit, decide};
use super::activator::{judge, judge_and_share, own_activation};
use crate::failure::Failure;
use crate::schema::activations;
use crate::stored::{AFTER_ALL_IDS, Column, StoredId as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::activation::{Activation, HandOutRefusal, VendMode};
use vault_core::digest::Digest;
use vault_core::id::{ActivationId, OrganizationId};
use vault_core::integration::IntegrationPrincipal;
use vault_core::namespace::Namespace;
use vault_core::port::{
    AbortActivation, ActivationRepository, DueCheck, EndActivation, FindActivation, ForIntegration, FoundIntegration,
    HandOut, ListActivations, NoteActivated, RecordCheck, StoreError, TakeChecks, TakeCredentials, TakenCredential,
};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

#[async_trait]
impl ActivationRepository for Store {
    async fn find_integration_by_token(&self, token: Digest) -> Result<Option<FoundIntegration>, StoreError> {
        self.read_at_once(token, |connection, token| Box::pin(lookup::find_by_token(connection, token))).await
    }

    async fn take_credentials(
        &self,
        command: ForIntegration<TakeCredentials>,
    ) -> Result<Vec<TakenCredential>, StoreError> {
        Ok(self
            .write_for(Some(command.principal.organization), command, |connection, command| {
                Box::pin(decide(connection, command))
            })
            .await??)
    }

    async fn hand_out(&self, command: ForIntegration<HandOut>) -> Result<Option<HandOutRefusal>, StoreError> {
        self.write_for(Some(command.principal.organization), command, |connection, command| {
            Box::pin(decide(connection, command))
        })
        .await
    }

    async fn list_activations(&self, query: ListActivations) -> Result<Vec<Activation>, StoreError> {
        self.read_for(Some(query.principal.organization), query, |connection, query| Box::pin(list(connection, query)))
            .await
    }

    async fn find_activation(&self, query: FindActivation) -> Result<Option<Activation>, StoreError> {
        self.read_for(Some(query.principal.organization), query, |connection, query| Box::pin(find(connection, query)))
            .await
    }

    async fn end_activation(&self, command: ForIntegration<EndActivation>) -> Result<bool, StoreError> {
        self.write_for(Some(command.principal.organization), command, |connection, command| {
            Box::pin(decide(connection, command))
        })
        .await
    }

    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError> {
        self.write_for(Some(command.organization), command, |connection, command| Box::pin(abort(connection, command)))
            .await
    }

    async fn take_checks(&self, act: TakeChecks) -> Result<Vec<DueCheck>, StoreError> {
        self.write(act, |connection, act| Box::pin(checks::take(connection, act))).await
    }

    async fn record_check(&self, act: RecordCheck) -> Result<bool, StoreError> {
        self.write_for(Some(act.organization), act, |connection, act| Box::pin(checks::record(connection, act))).await
    }

    async fn note_activated(&self, act: NoteActivated) -> Result<(), StoreError> {
        self.write_for(Some(act.organization), act, |connection, act| Box::pin(checks::note_activated(connection, act)))
            .await
    }
}

/// The live activations of an integration.
macro_rules! live_of {
    ($principal:expr, $now:expr) => {
        activations::table
            .filter(activations::organization_id.eq($principal.organization.stored()))
            .filter(narrow!(activations::integration_id.eq($principal.integration.stored())))
            .filter(activations::expires_at.gt($now.as_millis()))
    };
}

pub(crate) use live_of;

/// Of an activation, what [`decode`] reads.
macro_rules! columns {
    () => {
        (
            activations::id,
            activations::namespace,
            activations::vend,
            activations::credentials,
            activations::begun_at,
            activations::expires_at,
        )
    };
}

type ActivationRow = (Column<ActivationId>, Column<Namespace>, Column<VendMode>, i64, i64, i64);

fn decode(principal: &IntegrationPrincipal, row: ActivationRow) -> Result<Activation, Failure> {
    const TABLE: &str = "activations";
    let (id, namespace, vend, credentials, begun_at, expires_at) = row;
    let id = id.decode(TABLE, &"unknown", "id")?;
    Ok(Activation {
        id,
        organization: principal.organization,
        integration: principal.integration,
        namespace: namespace.decode(TABLE, &id, "namespace")?,
        vend: vend.decode(TABLE, &id, "vend")?,
        credentials: u32::try_from(credentials).map_err(|_| Failure::damaged(TABLE, id.to_string(), "credentials"))?,
        begun_at: Timestamp::from_millis(begun_at),
        expires_at: Timestamp::from_millis(expires_at),
    })
}

async fn list(connection: &mut Connection, query: &ListActivations) -> Result<Vec<Activation>, Failure> {
    judge(connection, &query.principal, query.now).await?.map_err(Denial::Integration)?;
    let before = query.after.map_or(AFTER_ALL_IDS, |id| id.stored());
    let newest_first = live_of!(query.principal, query.now)
        .filter(activations::id.lt(before))
        .order(activations::id.desc())
        .select(columns!());
    let rows: Vec<ActivationRow> = load_page!(newest_first, connection, query.limit).await?;
    rows.into_iter().map(|row| decode(&query.principal, row)).collect()
}

async fn find(connection: &mut Connection, query: &FindActivation) -> Result<Option<Activation>, Failure> {
    judge(connection, &query.principal, query.now).await?.map_err(Denial::Integration)?;
    let live = own_activation!(query.principal, query.activation)
        .filter(activations::expires_at.gt(query.now.as_millis()))
        .select(columns!());
    let row: Option<ActivationRow> = live.get_result(connection).await.optional()?;
    row.map(|row| decode(&query.principal, row)).transpose()
}

impl Decision<IntegrationPrincipal> for EndActivation {
    type Held = ();
    type Outcome = bool;

    async fn authorize(connection: &mut Connection, command: &ForIntegration<Self>) -> Result<(), Failure> {
        let judgement = judge_and_share(connection, &command.principal, command.act.activation, command.now).await?;
        Ok(judgement.map(drop).map_err(Denial::Integration)?)
    }

    async fn act(connection: &mut Connection, command: &ForIntegration<Self>, (): ()) -> Decided<bool> {
        let ended = diesel::delete(
            own_activation!(command.principal, command.act.activation)
                .filter(activations::expires_at.gt(command.now.as_millis())),
        )
        .execute(connection)
        .await?;
        Ok(if ended == 0 { Verdict::Refused(false) } else { Verdict::Done(true) })
    }
}

async fn abort(connection: &mut Connection, command: &AbortActivation) -> Decided<()> {
    let AbortActivation { organization, activation, audit: entry } = command;
    remove(connection, *organization, *activation).await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(()))
}

/// Removes an activation, if it exists.
pub(crate) async fn remove(
    connection: &mut Connection,
    organization: OrganizationId,
    activation: ActivationId,
) -> Result<(), Failure> {
    diesel::delete(
        activations::table
            .filter(activations::organization_id.eq(organization.stored()))
            .filter(activations::id.eq(activation.stored())),
    )
    .execute(connection)
    .await?;
    Ok(())
}
