//! Active activations: listing, finding and ending them.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction};
use super::authorize::{authorize, authorize_and_share, own_activation};
use crate::db::{Db, Reply, Tx, narrow};
use crate::failure::Failure;
use crate::schema::{activations, credential_uses, credentials};
use crate::stored::{AFTER_ALL_IDS, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::activation::{Activation, VendMode};
use vault_core::id::{ActivationId, OrganizationId};
use vault_core::integration::IntegrationPrincipal;
use vault_core::namespace::Namespace;
use vault_core::port::{AbortActivation, EndActivation, FindActivation, ForIntegration, ListActivations};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

/// The active activations of an integration.
#[auto_type(no_type_alias)]
pub(super) fn active_of(organization: IdBytes, integration: IdBytes, now: i64) -> _ {
    activations::table
        .filter(activations::organization_id.eq(organization))
        .filter(narrow(activations::integration_id.eq(integration)))
        .filter(activations::expires_at.gt(now))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = activations, check_for_backend(Db))]
struct ActivationRow {
    id: Column<ActivationId>,
    namespace: Column<Namespace>,
    vend: Column<VendMode>,
    credentials: i64,
    started_at: i64,
    expires_at: i64,
}

impl ActivationRow {
    fn decode(self, principal: &IntegrationPrincipal) -> Result<Activation, Failure> {
        const TABLE: &str = "activations";
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        let damaged = |_| Failure::damaged(TABLE, id.to_string(), "credentials");
        Ok(Activation {
            id,
            organization: principal.organization,
            integration: principal.integration,
            namespace: self.namespace.decode(TABLE, &id, "namespace")?,
            vend: self.vend.decode(TABLE, &id, "vend")?,
            credentials: u32::try_from(self.credentials).map_err(damaged)?,
            started_at: Timestamp::from_millis(self.started_at),
            expires_at: Timestamp::from_millis(self.expires_at),
        })
    }
}

impl Read for ListActivations {
    type Outcome = Vec<Activation>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<Activation>, Failure> {
        authorize(tx, &self.principal, self.now).await?.map_err(Denial::Integration)?;
        let before = self.after.map_or(AFTER_ALL_IDS, |id| id.stored());
        let (organization, integration) = (self.principal.organization.stored(), self.principal.integration.stored());
        let newest_first = active_of(organization, integration, self.now.as_millis())
            .filter(activations::id.lt(before))
            .order(activations::id.desc())
            .select(ActivationRow::as_select());
        tx.page(newest_first, self.limit).await?.into_iter().map(|row| row.decode(&self.principal)).collect()
    }
}

impl Read for FindActivation {
    type Outcome = Option<Activation>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<Activation>, Failure> {
        authorize(tx, &self.principal, self.now).await?.map_err(Denial::Integration)?;
        let (organization, integration) = (self.principal.organization.stored(), self.principal.integration.stored());
        let active = own_activation(organization, integration, self.activation.stored())
            .filter(activations::expires_at.gt(self.now.as_millis()))
            .select(ActivationRow::as_select());
        tx.first(active).await?.map(|row| row.decode(&self.principal)).transpose()
    }
}

impl Transaction for ForIntegration<EndActivation> {
    /// Whether the activation was active.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { principal, now, payload, .. } = self;
        authorize_and_share(tx, principal, payload.activation, *now).await?.map_err(Denial::Integration)?;
        let (organization, integration) = (principal.organization.stored(), principal.integration.stored());
        let activation = payload.activation.stored();
        let active = || {
            own_activation(organization, integration, activation).filter(activations::expires_at.gt(now.as_millis()))
        };
        let started = tx.first(active().select((activations::namespace, activations::started_at))).await?;
        let ended = tx.execute(diesel::delete(active())).await? > 0;
        if ended {
            if let Some((namespace, started)) = started {
                record_end(tx, (organization, activation), (namespace, started), *now).await?;
            }
            audit.record(tx, &self.audit).await?;
        }
        Ok(ended)
    }
}

/// Records the end of an activation in the uses of its credentials, all of which are in its namespace.
async fn record_end(
    tx: &Tx<'_>,
    (organization, activation): (IdBytes, IdBytes),
    (namespace, started): (String, i64),
    now: Timestamp,
) -> Result<(), Failure> {
    let issued = credentials::table
        .filter(credentials::organization_id.eq(organization))
        .filter(narrow(credentials::namespace.eq(namespace)))
        .select(credentials::id);
    let uses = credential_uses::table
        .filter(credential_uses::organization_id.eq(organization))
        .filter(credential_uses::id.eq_any(issued))
        .filter(credential_uses::at.eq(started))
        .filter(credential_uses::activation_id.eq(activation));
    tx.execute(diesel::update(uses).set(credential_uses::ended_at.eq(now.as_millis()))).await?;
    Ok(())
}

impl Transaction for AbortActivation {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        remove(tx, self.organization, self.activation).await?;
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

/// Removes an activation, if it exists.
pub(super) fn remove<'t>(tx: &'t Tx<'_>, organization: OrganizationId, activation: ActivationId) -> Reply<'t, usize> {
    let row = activations::table
        .filter(activations::organization_id.eq(organization.stored()))
        .filter(activations::id.eq(activation.stored()));
    tx.execute(diesel::delete(row))
}
