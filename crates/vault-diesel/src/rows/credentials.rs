//! Credentials and their uses.

use super::{TxRows, then};
use crate::schema::{credential_uses, credentials};
use crate::stored::{Column, StoredId as _};
use diesel::dsl::{case_when, count_star, max};
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _};
use vault_core::credential::Holder;
use vault_core::id::{CredentialId, IntegrationId, OrganizationId};
use vault_core::port::{CredentialRows, Reply};
use vault_core::time::Timestamp;

impl CredentialRows for TxRows<'_> {
    fn current_version(&self, organization: OrganizationId, credential: CredentialId) -> Reply<'_, Option<i64>> {
        let own = credentials::table
            .filter(credentials::organization_id.eq(organization.stored()))
            .filter(credentials::id.eq(credential.stored()))
            .select(credentials::version);
        then(self.tx.first(own), Ok)
    }

    fn holders(&self, organization: OrganizationId, id: CredentialId, now: Timestamp) -> Reply<'_, Vec<Holder>> {
        let is_open = credential_uses::ended_at.is_null().and(credential_uses::expires_at.gt(now.as_millis()));
        let held = credential_uses::table
            .filter(credential_uses::organization_id.eq(organization.stored()))
            .filter(credential_uses::id.eq(id.stored()))
            .group_by((credential_uses::integration_id, credential_uses::version))
            .order((credential_uses::integration_id, credential_uses::version))
            .select((
                credential_uses::integration_id,
                credential_uses::version,
                count_star(),
                max(credential_uses::at),
                max(case_when(is_open, credential_uses::expires_at)),
            ));
        then(self.tx.load(held), move |rows: Vec<Row>| {
            let decode = |(integration, version, activations, last, until): Row| {
                Ok(Holder {
                    integration: integration.decode("credential_uses", &id, "integration_id")?,
                    version,
                    activations,
                    last_activated_at: Timestamp::from_millis(last.unwrap_or_default()),
                    until: until.map(Timestamp::from_millis),
                })
            };
            rows.into_iter().map(decode).collect()
        })
    }
}

type Row = (Column<IntegrationId>, i64, i64, Option<i64>, Option<i64>);
