//! Where credentials are used.

use super::super::Read;
use super::super::authorize::authorize;
use super::row;
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{credential_uses, integrations};
use crate::stored::{AFTER_ALL_IDS, Column, StoredId as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
};
use vault_core::activation::{Purpose, VendedForm};
use vault_core::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use vault_core::integration::IntegrationName;
use vault_core::port::{CredentialUse, List, UsePosition};
use vault_core::time::Timestamp;

type UseRow = (
    i64,
    Column<ActivationId>,
    Column<IntegrationId>,
    Column<VendedForm>,
    Option<Column<Purpose>>,
    Option<String>,
    Option<Column<IntegrationName>>,
);

impl Read for List<UsePosition, (OrganizationId, CredentialId)> {
    /// The uses, newest first. `None` if the credential does not exist.
    type Outcome = Option<Vec<CredentialUse>>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<Vec<CredentialUse>>, Failure> {
        let (organization, id) = self.of;
        authorize(tx, &self.principal, self.now).await?;
        if row::read(tx, organization, id).await?.is_none() {
            return Ok(None);
        }
        let at = self.after.map_or(i64::MAX, |after| after.at.as_millis());
        let activation = self.after.map_or(AFTER_ALL_IDS, |after| after.activation.stored());
        let of_both = integrations::organization_id.eq(credential_uses::organization_id);
        let is_integration = of_both.and(integrations::id.eq(credential_uses::integration_id));
        let same_moment = credential_uses::at.eq(at).and(credential_uses::activation_id.lt(activation));
        let newest_first = credential_uses::table
            .left_join(integrations::table.on(is_integration))
            .filter(credential_uses::organization_id.eq(organization.stored()))
            .filter(credential_uses::id.eq(id.stored()))
            .filter(credential_uses::at.lt(at).or(same_moment))
            .order((credential_uses::at.desc(), credential_uses::activation_id.desc()))
            .select((
                credential_uses::at,
                credential_uses::activation_id,
                credential_uses::integration_id,
                credential_uses::form,
                credential_uses::purpose,
                credential_uses::workload,
                integrations::name.nullable(),
            ));
        let rows = tx.page(newest_first, self.limit).await?;
        rows.into_iter().map(|row| decode(id, row)).collect::<Result<_, Failure>>().map(Some)
    }
}

fn decode(id: CredentialId, row: UseRow) -> Result<CredentialUse, Failure> {
    const TABLE: &str = "credential_uses";
    let (at, activation, integration, form, purpose, workload, name) = row;
    Ok(CredentialUse {
        activation: activation.decode(TABLE, &id, "activation_id")?,
        at: Timestamp::from_millis(at),
        integration: integration.decode(TABLE, &id, "integration_id")?,
        name: name.map(|name| name.decode("integrations", &id, "name")).transpose()?,
        form: form.decode(TABLE, &id, "form")?,
        purpose: purpose.map(|purpose| purpose.decode(TABLE, &id, "purpose")).transpose()?,
        workload,
    })
}
