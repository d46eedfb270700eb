//! Credentials and their uses.

mod checks;
mod list;
mod rotation;
pub(super) mod row;
pub(super) mod sealed;
pub(super) mod versions;
pub(super) mod write;

use self::row::{CredentialRow, credential_of};
use super::{TxRows, several, then};
use crate::db::{Db, Update, locked};
use crate::failure::Failure;
use crate::schema::{check_requests, credential_labels, credential_secrets, credential_uses, credentials};
use crate::stored::{AFTER_ALL_IDS, Column, StoredId as _};
use diesel::dsl::{case_when, count_star, max};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use futures_util::try_join;
use vault_core::activation::{Purpose, VendedForm};
use vault_core::credential::{
    CheckRound, CredentialQuery, CredentialUpdate, CredentialUse, DueCheck, EarlierRequest, Holder, LastCheck,
    ListUses, ListedRows, NewCredentialRow, VersionKey,
};
use vault_core::digest::Digest;
use vault_core::id::{ActivationId, CredentialId, IntegrationId, KeyId, OrganizationId};
use vault_core::port::{CredentialRows, Idempotency, Reply, SealedCredential, StoredCredential, StoredVersions};
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

fn decode_use(id: CredentialId, row: UseRow) -> Result<CredentialUse, Failure> {
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

impl TxRows<'_> {
    /// Inserts the credentials that were collected, which a following statement concerns.
    pub(super) async fn insert_pending_credentials(&self) -> Result<(), Failure> {
        let tx = &self.tx;
        try_join!(
            tx.insert_pending::<credentials::table>(),
            tx.insert_pending::<credential_secrets::table>(),
            tx.insert_pending::<credential_labels::table>(),
        )?;
        Ok(())
    }
}

impl CredentialRows for TxRows<'_> {
    fn credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<StoredCredential>> {
        let row = credential_of(organization.stored(), id.stored()).select(CredentialRow::as_select());
        let decode = |row: Option<CredentialRow>| row.map(CredentialRow::decode).transpose();
        if self.tx.collects() {
            return several(async move {
                self.insert_pending_credentials().await?;
                decode(self.tx.first(locked(row, Update)).await?)
            });
        }
        match self.writes {
            false => then(self.tx.first(row), decode),
            true => then(self.tx.first(locked(row, Update)), decode),
        }
    }

    fn credential_versions(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<StoredVersions>> {
        several(async move {
            self.insert_pending_credentials().await?;
            versions::versions(&self.tx, organization, id).await
        })
    }

    fn listed_credentials(&self, query: &CredentialQuery, now: Timestamp) -> Reply<'_, ListedRows> {
        let query = query.clone();
        several(async move { list::page(&self.tx, &query, now).await })
    }

    fn credential_count(&self, organization: OrganizationId) -> Reply<'_, i64> {
        self.count(organization)
    }

    fn insert_credential<'t>(&'t self, new: &'t NewCredentialRow) -> Reply<'t, ()> {
        several(async move {
            try_join!(write::insert(&self.tx, new), self.add_to_count(new.organization, 1))?;
            Ok(())
        })
    }

    fn change_credential<'t>(&'t self, update: &'t CredentialUpdate<'t>) -> Reply<'t, ()> {
        several(async move {
            // Versions that were inserted and not written yet may be changed.
            self.tx.insert_pending::<credential_secrets::table>().await?;
            self.tx.keeping(|| write::change(&self.tx, update)).await
        })
    }

    fn version_check(
        &self,
        organization: OrganizationId,
        id: CredentialId,
        version: i64,
    ) -> Reply<'_, Option<LastCheck>> {
        several(async move {
            self.tx.insert_pending::<credential_secrets::table>().await?;
            sealed::version_check(&self.tx, VersionKey { organization, id, version }).await
        })
    }

    fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Reply<'_, i64> {
        let sealed = credentials::table.filter(credentials::organization_id.eq(organization.stored()));
        then(self.tx.one(sealed.filter(credentials::key_id.eq(key.stored())).count()), Ok)
    }

    fn sealed_except(
        &self,
        organization: OrganizationId,
        key: KeyId,
        after: Option<CredentialId>,
        limit: usize,
    ) -> Reply<'_, Vec<SealedCredential>> {
        several(async move {
            self.insert_pending_credentials().await?;
            rotation::sealed_except(&self.tx, organization, key, after, limit).await
        })
    }

    fn reseal_credential<'t>(
        &'t self,
        organization: OrganizationId,
        credential: &'t SealedCredential,
    ) -> Reply<'t, ()> {
        several(rotation::reseal(&self.tx, organization, credential))
    }

    fn labels(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Vec<Digest>> {
        several(write::labels(&self.tx, organization, id))
    }

    fn set_labels(&self, organization: OrganizationId, id: CredentialId, labels: &[Digest]) -> Reply<'_, ()> {
        let labels = labels.to_vec();
        several(async move { write::replace_labels(&self.tx, organization, id, &labels).await })
    }

    fn remove_credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, ()> {
        let (of, key) = (organization.stored(), id.stored());
        macro_rules! rows_of {
            ($table:ident) => {
                diesel::delete($table::table.filter($table::organization_id.eq(of)).filter($table::id.eq(key)))
            };
        }
        several(async move {
            let tx = &self.tx;
            let removed = tx.keeping(|| async {
                try_join!(
                    tx.execute(rows_of!(credentials)),
                    tx.execute(rows_of!(credential_secrets)),
                    tx.execute(rows_of!(credential_labels)),
                    tx.execute(rows_of!(credential_uses)),
                    tx.execute(rows_of!(check_requests)),
                )
            });
            removed.await?;
            self.add_to_count(organization, -1).await
        })
    }

    fn earlier_request(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Reply<'_, Option<EarlierRequest>> {
        let idempotency = idempotency.clone();
        several(async move { write::earlier_request(&self.tx, organization, &idempotency).await })
    }

    fn uses(&self, query: &ListUses) -> Reply<'_, Vec<CredentialUse>> {
        let ListUses { organization, id, after, limit } = *query;
        let at = after.map_or(i64::MAX, |after| after.at.as_millis());
        let activation = after.map_or(AFTER_ALL_IDS, |after| after.activation.stored());
        let same_moment = credential_uses::at.eq(at).and(credential_uses::activation_id.lt(activation));
        let newest_first = credential_uses::table
            .filter(credential_uses::organization_id.eq(organization.stored()))
            .filter(credential_uses::id.eq(id.stored()))
            .filter(credential_uses::at.lt(at).or(same_moment))
            .order((credential_uses::at.desc(), credential_uses::activation_id.desc()))
            .select(UseRow::as_select());
        then(self.tx.page(newest_first, limit), move |rows: Vec<UseRow>| {
            rows.into_iter().map(|row| decode_use(id, row)).collect()
        })
    }

    fn checker_seen_at(&self) -> Reply<'_, Option<Timestamp>> {
        then(checks::seen_at(&self.tx), |at| Ok(at.map(Timestamp::from_millis)))
    }

    fn request_check(
        &self,
        organization: OrganizationId,
        id: CredentialId,
        version: i64,
        at: Timestamp,
    ) -> Reply<'_, ()> {
        several(checks::request(&self.tx, organization, id, version, at))
    }

    fn remove_check_request(&self, key: VersionKey) -> Reply<'_, ()> {
        then(checks::remove_request(&self.tx, key), |_| Ok(()))
    }

    fn set_check(&self, key: VersionKey, check: LastCheck) -> Reply<'_, bool> {
        several(checks::set_check(&self.tx, key, check))
    }

    fn lock_check_round(&self, now: Timestamp) -> Reply<'_, (Timestamp, CheckRound)> {
        several(checks::lock_round(&self.tx, now))
    }

    fn set_check_round(&self, now: Timestamp, round: CheckRound) -> Reply<'_, ()> {
        then(checks::set_round(&self.tx, now, round), |_| Ok(()))
    }

    fn claim_requested_checks(&self, now: Timestamp, most: usize) -> Reply<'_, Vec<VersionKey>> {
        several(checks::claim_requested(&self.tx, now, most))
    }

    fn credentials_after(
        &self,
        after: Option<(OrganizationId, CredentialId)>,
        most: usize,
    ) -> Reply<'_, Vec<VersionKey>> {
        several(checks::following(&self.tx, after, most))
    }

    fn due_check(&self, key: VersionKey) -> Reply<'_, Option<DueCheck>> {
        several(sealed::due_check(&self.tx, key))
    }

    fn set_activated(
        &self,
        organization: OrganizationId,
        credentials: &[CredentialId],
        minute: Timestamp,
    ) -> Reply<'_, ()> {
        let credentials = credentials.to_vec();
        several(async move { checks::set_activated(&self.tx, organization, &credentials, minute).await })
    }

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
