//! Where credentials are used.

use super::super::backend::{Connection, load_page};
use super::row;
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{credential_uses, integrations};
use crate::stored::{AFTER_ALL_IDS, Column, StoredId as _};
use crate::transaction::authorize::authorize;
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

pub(super) async fn list(
    connection: &mut Connection,
    query: &List<UsePosition, (OrganizationId, CredentialId)>,
) -> Result<Option<Vec<CredentialUse>>, Failure> {
    let (organization, id) = query.of;
    authorize(&connection.tx(), &query.principal, query.now).await?;
    if row::read(&connection.tx(), organization, id).await?.is_none() {
        return Ok(None);
    }
    let at = query.after.map_or(i64::MAX, |after| after.at.as_millis());
    let activation = query.after.map_or(AFTER_ALL_IDS, |after| after.activation.stored());
    let newest_first = credential_uses::table
        .left_join(
            integrations::table.on(integrations::organization_id
                .eq(credential_uses::organization_id)
                .and(integrations::id.eq(credential_uses::integration_id))),
        )
        .filter(credential_uses::organization_id.eq(organization.stored()))
        .filter(credential_uses::id.eq(id.stored()))
        .filter(
            credential_uses::at
                .lt(at)
                .or(credential_uses::at.eq(at).and(credential_uses::activation_id.lt(activation))),
        )
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
    let rows: Vec<UseRow> = load_page!(newest_first, connection, query.limit).await?;
    let decode = |(at, activation, integration, form, purpose, workload, name): UseRow| {
        const TABLE: &str = "credential_uses";
        Ok(CredentialUse {
            activation: activation.decode(TABLE, &id, "activation_id")?,
            at: Timestamp::from_millis(at),
            integration: integration.decode(TABLE, &id, "integration_id")?,
            name: name.map(|name| name.decode("integrations", &id, "name")).transpose()?,
            form: form.decode(TABLE, &id, "form")?,
            purpose: purpose.map(|purpose| purpose.decode(TABLE, &id, "purpose")).transpose()?,
            workload,
        })
    };
    rows.into_iter().map(decode).collect::<Result<_, Failure>>().map(Some)
}
