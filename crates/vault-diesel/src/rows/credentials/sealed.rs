//! Credentials with the sealed data of a version.

use super::row::{self, CredentialRow, credential_of};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, Queryable, Selectable,
    SelectableHelper as _,
};
use vault_core::activation::FetchedCredential;
use vault_core::check::CheckReason;
use vault_core::credential::{DueCheck, LastCheck, VersionKey};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::StoredCredential;
use vault_core::sealed::{Blob, SealedData};

const TABLE: &str = "credential_secrets";

/// The sealed data of a version.
#[derive(Queryable, Selectable)]
#[diesel(table_name = credential_secrets, check_for_backend(Db))]
pub(crate) struct SecretRow {
    version: i64,
    data_key: Vec<u8>,
    data: Vec<u8>,
    checked_at: Option<i64>,
    check_since: Option<i64>,
    check_failed: Option<Column<CheckReason>>,
}

#[auto_type(no_type_alias)]
pub(crate) fn secrets_of(organization: IdBytes, id: IdBytes) -> _ {
    credential_secrets::table
        .filter(credential_secrets::organization_id.eq(organization))
        .filter(credential_secrets::id.eq(id))
}

/// Credentials with the data of their current versions. A credential whose data is missing is included, so that the damage is
/// reported.
#[auto_type(no_type_alias)]
pub(crate) fn with_secrets() -> _ {
    let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
    let is_current = credential_secrets::version.eq(credentials::version);
    let is_secret = of_both.and(credential_secrets::id.eq(credentials::id)).and(is_current);
    credentials::table.left_join(credential_secrets::table.on(is_secret))
}

/// Returns a credential with the data of its current version.
pub(crate) fn decode((row, secret): (CredentialRow, Option<SecretRow>)) -> Result<FetchedCredential, Failure> {
    let row = row.decode()?;
    let secret = secret.ok_or_else(|| Failure::damaged(TABLE, row.id.to_string(), "missing"))?;
    Ok(secret.of(row))
}

impl SecretRow {
    pub(crate) fn data(self) -> (i64, SealedData) {
        (self.version, SealedData { data_key: Blob::from_bytes(self.data_key), data: Blob::from_bytes(self.data) })
    }

    fn of(self, row: StoredCredential) -> FetchedCredential {
        let (version, data) = self.data();
        FetchedCredential { row, version, data }
    }
}

/// Reads all versions of a credential with their data, ordered by number.
pub(crate) async fn read_all(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<Vec<FetchedCredential>, Failure> {
    let row = credential_of(organization.stored(), id.stored()).select(CredentialRow::as_select());
    let Some(row) = tx.first(row).await? else { return Ok(Vec::new()) };
    let row = row.decode()?;
    let secrets = secrets_of(organization.stored(), id.stored()).order(credential_secrets::version);
    let secrets: Vec<SecretRow> = tx.load(secrets.select(SecretRow::as_select())).await?;
    Ok(secrets.into_iter().map(|secret| secret.of(row.clone())).collect())
}

/// Reads a version with its data, for a check. Returns `None` if the version no longer exists.
pub(crate) async fn due_check(tx: &Tx<'_>, key: VersionKey) -> Result<Option<DueCheck>, Failure> {
    let VersionKey { organization, id, version } = key;
    let row = credential_of(organization.stored(), id.stored()).select(CredentialRow::as_select());
    let Some(row) = tx.first(row).await? else { return Ok(None) };
    let row = row.decode()?;
    let secret = secrets_of(organization.stored(), id.stored()).filter(credential_secrets::version.eq(version));
    let Some(mut secret) = tx.first(secret.select(SecretRow::as_select())).await? else {
        return if row.version == version { Err(Failure::damaged(TABLE, id.to_string(), "missing")) } else { Ok(None) };
    };
    let before = row::check((secret.checked_at, secret.check_since, secret.check_failed.take()), TABLE, id)?;
    Ok(Some(DueCheck { organization, credential: secret.of(row), before }))
}

/// Reads the result of the last check of a version.
pub(crate) async fn version_check(
    tx: &Tx<'_>,
    VersionKey { organization, id, version }: VersionKey,
) -> Result<Option<LastCheck>, Failure> {
    let check = secrets_of(organization.stored(), id.stored())
        .filter(credential_secrets::version.eq(version))
        .select((credential_secrets::checked_at, credential_secrets::check_since, credential_secrets::check_failed));
    match tx.first::<row::CheckColumns, _>(check).await? {
        Some(check) => row::check(check, TABLE, id),
        None => Err(Failure::damaged(TABLE, id.to_string(), "missing")),
    }
}
