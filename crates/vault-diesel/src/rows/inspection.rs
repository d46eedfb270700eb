//! Rows as they are stored, for integrity checks.

use super::audit::entries;
use super::credentials::row::credential_of;
use super::credentials::{sealed, versions, write};
use super::entities::entity_of;
use super::{TxRows, several, then};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials};
use crate::stored::{AnyId, StoredId as _, columns_of, place_of};
use diesel::dsl::exists;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _};
use vault_core::audit::{AuditEntry, RecordedRow};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{InspectionRows, RecordedStates, RecordedSubject, Reply, RowKey, StoredRowKey, WholeCredential};

impl InspectionRows for TxRows<'_> {
    fn credential_places(&self, after: Option<StoredRowKey>, limit: usize) -> Reply<'_, Vec<StoredRowKey>> {
        let (organization, id) = columns_of(&after.unwrap_or_default());
        let following = credentials::table
            .filter(credentials::organization_id.ge(organization.clone()))
            .filter(credentials::organization_id.gt(organization).or(credentials::id.gt(id)))
            .order((credentials::organization_id, credentials::id))
            .select((credentials::organization_id, credentials::id));
        then(self.tx.page(following, limit), |places: Vec<(AnyId, AnyId)>| {
            Ok(places.into_iter().map(place_of).collect())
        })
    }

    fn whole_credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<WholeCredential>> {
        several(async move {
            let Some(versions) = versions::versions(&self.tx, organization, id).await? else { return Ok(None) };
            let data = sealed::read_all(&self.tx, organization, id).await?;
            if data.iter().all(|fetched| fetched.version != versions.current.version) {
                return Err(Failure::damaged("credential_secrets", id.to_string(), "missing"));
            }
            let labels = write::labels(&self.tx, organization, id).await?;
            Ok(Some(WholeCredential { versions, data, labels }))
        })
    }

    /// In the order of IDs and organizations, which an index has.
    fn version_places(&self, after: Option<StoredRowKey>, limit: usize) -> Reply<'_, Vec<(StoredRowKey, bool)>> {
        let (organization, id) = columns_of(&after.unwrap_or_default());
        let credential = credentials::table
            .filter(credentials::organization_id.eq(credential_secrets::organization_id))
            .filter(credentials::id.eq(credential_secrets::id));
        let following = credential_secrets::table
            .filter(credential_secrets::id.ge(id.clone()))
            .filter(credential_secrets::id.gt(id).or(credential_secrets::organization_id.gt(organization)))
            .order((credential_secrets::id, credential_secrets::organization_id))
            .select(((credential_secrets::organization_id, credential_secrets::id), exists(credential)));
        then(self.tx.page(following, limit), |mut places: Vec<((AnyId, AnyId), bool)>| {
            places.dedup();
            Ok(places.into_iter().map(|(place, exists)| (place_of(place), exists)).collect())
        })
    }

    fn recorded_entries(&self, query: &RecordedStates) -> Reply<'_, Vec<AuditEntry>> {
        let query = query.clone();
        several(async move { entries::recorded(&self.tx, &query).await })
    }

    fn recorded_subjects(&self, after: Option<RecordedSubject>, limit: usize) -> Reply<'_, Vec<RecordedSubject>> {
        several(entries::recorded_subjects(&self.tx, after, limit))
    }

    fn row_exists(&self, row: RecordedRow, (organization, id): RowKey) -> Reply<'_, bool> {
        let (organization, id) = (organization.stored(), KeyId::from_uuid(id).stored());
        let count = match row {
            RecordedRow::Credential => self.tx.one(credential_of(organization, id).count()),
            // Entities have the names of their rows in audit entries.
            _ => self.tx.one(entity_of(organization, row.as_str(), id).count()),
        };
        then(count, |count: i64| Ok(count > 0))
    }
}
