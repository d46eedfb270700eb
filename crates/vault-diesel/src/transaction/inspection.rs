//! Reads stored rows one by one, for integrity checks.

use super::Read;
use super::credential::{labels, sealed, versions};
use crate::db::{Parts, Tx};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials};
use crate::stored::{AnyId, Id, StoredId as _, columns_of, place_of};
use diesel::dsl::exists;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _};
use vault_core::audit::RecordedRow;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{ProtectedTable, RowKey, StoredRowKey, WholeCredential};

/// The row keys of credentials, in their order.
pub(crate) struct CredentialPlaces {
    pub(crate) after: StoredRowKey,
    pub(crate) limit: usize,
}

impl Read for CredentialPlaces {
    type Outcome = Vec<StoredRowKey>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredRowKey>, Failure> {
        let (organization, id) = columns_of(&self.after);
        let following = credentials::table
            .filter(credentials::organization_id.ge(&organization))
            .filter(credentials::organization_id.gt(&organization).or(credentials::id.gt(&id)))
            .order((credentials::organization_id, credentials::id))
            .select((credentials::organization_id, credentials::id));
        let places: Vec<(AnyId, AnyId)> = tx.page(following, self.limit).await?;
        Ok(places.into_iter().map(place_of).collect())
    }
}

/// The row keys of credentials that have data, in the order of IDs and organizations, and whether each credential exists.
pub(crate) struct VersionPlaces {
    pub(crate) after: StoredRowKey,
    pub(crate) limit: usize,
}

impl Read for VersionPlaces {
    type Outcome = Vec<(StoredRowKey, bool)>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<(StoredRowKey, bool)>, Failure> {
        let (organization, id) = columns_of(&self.after);
        let credential = credentials::table
            .filter(credentials::organization_id.eq(credential_secrets::organization_id))
            .filter(credentials::id.eq(credential_secrets::id));
        let following = credential_secrets::table
            .filter(credential_secrets::id.ge(&id))
            .filter(credential_secrets::id.gt(&id).or(credential_secrets::organization_id.gt(&organization)))
            .order((credential_secrets::id, credential_secrets::organization_id))
            .select(((credential_secrets::organization_id, credential_secrets::id), exists(credential)));
        let mut places: Vec<((AnyId, AnyId), bool)> = tx.page(following, self.limit).await?;
        places.dedup();
        Ok(places.into_iter().map(|(place, exists)| (place_of(place), exists)).collect())
    }
}

/// The rows of these keys that exist.
pub(crate) struct ExistingRows {
    pub(crate) row: RecordedRow,
    pub(crate) places: Vec<RowKey>,
}

impl Read for ExistingRows {
    type Outcome = Vec<RowKey>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<RowKey>, Failure> {
        let ProtectedTable { name, key: key @ [of, own], .. } = self.row.protected();
        let rows = Parts::<(Id, Id)>::new("SELECT ").names(key).text(" FROM ").name(name).text(" WHERE ");
        // Entities of all kinds are in one table, under the names of their rows in audit entries.
        let kind = if name == "entities" { [" AND kind = '", self.row.as_str(), "'"] } else { [""; 3] };
        let rows = rows.each(&self.places, " OR ", |statement, (organization, id)| {
            let statement = statement.text("(").name(of).text(" = ").id(organization.stored());
            let statement = statement.text(" AND ").name(own).text(" = ").id(KeyId::from_uuid(*id).stored());
            kind.into_iter().fold(statement, Parts::text).text(")")
        });
        let found: Vec<(AnyId, AnyId)> = tx.page(rows, usize::MAX).await?;
        found.into_iter().map(|(of, id)| Ok((of.decode(name)?, *id.decode::<KeyId>(name)?.as_uuid()))).collect()
    }
}

/// A credential with all its rows, if it exists.
pub(crate) struct ReadWholeCredential {
    pub(crate) organization: OrganizationId,
    pub(crate) id: CredentialId,
}

impl Read for ReadWholeCredential {
    type Outcome = Option<WholeCredential>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<WholeCredential>, Failure> {
        let Self { organization, id } = *self;
        let Some(versions) = versions::versions(tx, organization, id).await? else { return Ok(None) };
        let data = sealed::read_all(tx, organization, id).await?;
        if data.iter().all(|fetched| fetched.version != versions.current.version) {
            return Err(Failure::damaged("credential_secrets", id.to_string(), "missing"));
        }
        let labels = labels::read(tx, organization, id).await?;
        Ok(Some(WholeCredential { versions, data, labels }))
    }
}
