//! Where credentials are used.

use super::super::Read;
use super::super::authorize::authorize;
use super::row;
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::credential_uses;
use crate::stored::{AFTER_ALL_IDS, Column, StoredId as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::activation::{Purpose, VendedForm};
use vault_core::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use vault_core::port::{CredentialUse, List, UsePosition};
use vault_core::time::Timestamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = credential_uses, check_for_backend(Db))]
struct UseRow {
    at: i64,
    activation_id: Column<ActivationId>,
    integration_id: Column<IntegrationId>,
    version: i64,
    form: Column<VendedForm>,
    expires_at: i64,
    ended_at: Option<i64>,
    purpose: Option<Column<Purpose>>,
    workload: Option<String>,
}

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
        let same_moment = credential_uses::at.eq(at).and(credential_uses::activation_id.lt(activation));
        let newest_first = credential_uses::table
            .filter(credential_uses::organization_id.eq(organization.stored()))
            .filter(credential_uses::id.eq(id.stored()))
            .filter(credential_uses::at.lt(at).or(same_moment))
            .order((credential_uses::at.desc(), credential_uses::activation_id.desc()))
            .select(UseRow::as_select());
        let rows = tx.page(newest_first, self.limit).await?;
        rows.into_iter().map(|row| decode(id, row)).collect::<Result<_, Failure>>().map(Some)
    }
}

fn decode(id: CredentialId, row: UseRow) -> Result<CredentialUse, Failure> {
    const TABLE: &str = "credential_uses";
    Ok(CredentialUse {
        activation: row.activation_id.decode(TABLE, &id, "activation_id")?,
        at: Timestamp::from_millis(row.at),
        expires_at: Timestamp::from_millis(row.expires_at),
        ended_at: row.ended_at.map(Timestamp::from_millis),
        version: row.version,
        integration: row.integration_id.decode(TABLE, &id, "integration_id")?,
        name: None,
        form: row.form.decode(TABLE, &id, "form")?,
        purpose: row.purpose.map(|purpose| purpose.decode(TABLE, &id, "purpose")).transpose()?,
        workload: row.workload,
    })
}
