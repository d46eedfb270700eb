//! Activations, and what they issue.

use super::credentials::row::CredentialRow;
use super::credentials::sealed::{SecretRow, decode, with_secrets};
use super::{TxRows, several, then};
use crate::db::{Db, narrow};
use crate::failure::Failure;
use crate::schema::{activations, credential_uses, credentials};
use crate::stored::{AFTER_ALL_IDS, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::activation::{Activation, FetchedCredential, ListActivations, Purpose, VendMode, VendRule};
use vault_core::credential::CredentialUse;
use vault_core::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{ActivationRows, Reply};
use vault_core::time::Timestamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = activations, check_for_backend(Db))]
struct ActivationRow {
    id: Column<ActivationId>,
    integration_id: Column<IntegrationId>,
    namespace: Column<Namespace>,
    vend: Column<VendMode>,
    credentials: i64,
    started_at: i64,
    expires_at: i64,
}

impl ActivationRow {
    fn decode(self, organization: OrganizationId) -> Result<Activation, Failure> {
        const TABLE: &str = "activations";
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        let damaged = |_| Failure::damaged(TABLE, id.to_string(), "credentials");
        Ok(Activation {
            id,
            organization,
            integration: self.integration_id.decode(TABLE, &id, "integration_id")?,
            namespace: self.namespace.decode(TABLE, &id, "namespace")?,
            vend: self.vend.decode(TABLE, &id, "vend")?,
            credentials: u32::try_from(self.credentials).map_err(damaged)?,
            started_at: Timestamp::from_millis(self.started_at),
            expires_at: Timestamp::from_millis(self.expires_at),
        })
    }
}

#[auto_type(no_type_alias)]
fn activation_of(organization: IdBytes, id: IdBytes) -> _ {
    activations::table.filter(activations::organization_id.eq(organization)).filter(activations::id.eq(id))
}

#[auto_type(no_type_alias)]
fn active_of(organization: IdBytes, integration: IdBytes, now: i64) -> _ {
    activations::table
        .filter(activations::organization_id.eq(organization))
        .filter(narrow(activations::integration_id.eq(integration)))
        .filter(activations::expires_at.gt(now))
}

/// A credential's ID, version and rule.
type Version = (Column<CredentialId>, i64, Column<VendRule>);

fn decode_version((id, version, vend): Version) -> Result<(CredentialId, i64, VendRule), Failure> {
    let id = id.decode("credentials", &"unknown", "id")?;
    Ok((id, version, vend.decode("credentials", &id, "vend")?))
}

impl ActivationRows for TxRows<'_> {
    fn sealed_credentials(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        limit: usize,
    ) -> Reply<'_, Vec<FetchedCredential>> {
        let oldest_first = with_secrets()
            .filter(credentials::organization_id.eq(organization.stored()))
            .filter(narrow(credentials::namespace.eq(namespace.as_str().to_owned())))
            .order(credentials::id)
            .select((CredentialRow::as_select(), Option::<SecretRow>::as_select()));
        several(async move {
            self.insert_pending_credentials().await?;
            self.tx.page(oldest_first, limit).await?.into_iter().map(decode).collect()
        })
    }

    fn issuable_versions(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        credentials: &[CredentialId],
    ) -> Reply<'_, Vec<(CredentialId, i64, VendRule)>> {
        let ids: Vec<_> = credentials.iter().map(|id| id.stored()).collect();
        let current = credentials::table
            .filter(credentials::organization_id.eq(organization.stored()))
            .filter(credentials::id.eq_any(ids))
            .filter(credentials::namespace.eq(namespace.as_str().to_owned()))
            .select((credentials::id, credentials::version, credentials::vend));
        then(self.tx.load(current), |rows: Vec<Version>| rows.into_iter().map(decode_version).collect())
    }

    fn count_activations(
        &self,
        organization: OrganizationId,
        integration: IntegrationId,
        now: Timestamp,
    ) -> Reply<'_, i64> {
        let active = active_of(organization.stored(), integration.stored(), now.as_millis());
        then(self.tx.one(active.count()), Ok)
    }

    fn active_activations(&self, query: &ListActivations) -> Reply<'_, Vec<Activation>> {
        let (organization, integration) = (query.principal.organization, query.principal.integration.stored());
        let newest_first = active_of(organization.stored(), integration, query.now.as_millis())
            .filter(activations::id.lt(query.after.map_or(AFTER_ALL_IDS, |id| id.stored())))
            .order(activations::id.desc())
            .select(ActivationRow::as_select());
        then(self.tx.page(newest_first, query.limit), move |rows: Vec<ActivationRow>| {
            rows.into_iter().map(|row| row.decode(organization)).collect()
        })
    }

    fn activation(&self, organization: OrganizationId, id: ActivationId) -> Reply<'_, Option<Activation>> {
        let row = activation_of(organization.stored(), id.stored()).select(ActivationRow::as_select());
        then(self.tx.first(row), move |row: Option<ActivationRow>| row.map(|row| row.decode(organization)).transpose())
    }

    fn insert_activation(&self, activation: &Activation) -> Reply<'_, ()> {
        let new = diesel::insert_into(activations::table).values((
            activations::organization_id.eq(activation.organization.stored()),
            activations::id.eq(activation.id.stored()),
            activations::integration_id.eq(activation.integration.stored()),
            activations::namespace.eq(activation.namespace.as_str()),
            activations::vend.eq(activation.vend.as_str()),
            activations::credentials.eq(i64::from(activation.credentials)),
            activations::started_at.eq(activation.started_at.as_millis()),
            activations::expires_at.eq(activation.expires_at.as_millis()),
        ));
        then(self.tx.execute_aside(new), |_| Ok(()))
    }

    fn renew_activation(&self, activation: &Activation) -> Reply<'_, ()> {
        let row = activation_of(activation.organization.stored(), activation.id.stored());
        let renewed = (
            activations::expires_at.eq(activation.expires_at.as_millis()),
            activations::credentials.eq(i64::from(activation.credentials)),
        );
        then(self.tx.execute_aside(diesel::update(row).set(renewed)), |_| Ok(()))
    }

    fn remove_activation(&self, organization: OrganizationId, id: ActivationId) -> Reply<'_, ()> {
        let row = activation_of(organization.stored(), id.stored());
        then(self.tx.execute_aside(diesel::delete(row)), |_| Ok(()))
    }

    fn remove_activations(&self, organization: OrganizationId, integration: IntegrationId) -> Reply<'_, ()> {
        let own = activations::table
            .filter(activations::organization_id.eq(organization.stored()))
            .filter(narrow(activations::integration_id.eq(integration.stored())));
        then(self.tx.execute_aside(diesel::delete(own)), |_| Ok(()))
    }

    fn set_uses(&self, organization: OrganizationId, uses: &[(CredentialId, CredentialUse)]) -> Reply<'_, ()> {
        let uses = uses.iter().map(|(id, used)| {
            let issued = (
                credential_uses::version.eq(used.version),
                credential_uses::form.eq(used.form.as_str()),
                credential_uses::expires_at.eq(used.expires_at.as_millis()),
            );
            diesel::insert_into(credential_uses::table)
                .values((
                    issued,
                    credential_uses::organization_id.eq(organization.stored()),
                    credential_uses::id.eq(id.stored()),
                    credential_uses::at.eq(used.at.as_millis()),
                    credential_uses::activation_id.eq(used.activation.stored()),
                    credential_uses::integration_id.eq(used.integration.stored()),
                    credential_uses::purpose.eq(used.purpose.as_ref().map(Purpose::as_str)),
                    credential_uses::workload.eq(used.workload.as_deref()),
                ))
                .on_conflict((
                    credential_uses::organization_id,
                    credential_uses::id,
                    credential_uses::at,
                    credential_uses::activation_id,
                ))
                .do_update()
                .set(issued)
        });
        then(self.tx.execute_each(uses), |_| Ok(()))
    }

    fn end_uses(&self, activation: &Activation, at: Timestamp) -> Reply<'_, ()> {
        let organization = activation.organization.stored();
        let issued = credentials::table
            .filter(credentials::organization_id.eq(organization))
            .filter(narrow(credentials::namespace.eq(activation.namespace.as_str())))
            .select(credentials::id);
        let uses = credential_uses::table
            .filter(credential_uses::organization_id.eq(organization))
            .filter(credential_uses::id.eq_any(issued))
            .filter(credential_uses::at.eq(activation.started_at.as_millis()))
            .filter(credential_uses::activation_id.eq(activation.id.stored()));
        let ended = diesel::update(uses).set(credential_uses::ended_at.eq(at.as_millis()));
        then(self.tx.execute_aside(ended), |_| Ok(()))
    }
}
