//! The versions of a credential.
//!
//! The current version is in `credentials` and `credential_secrets`, where saves, lists and activations find it. The others
//! are in `credential_versions`.

use super::row::{self, CheckColumns, CredentialRow};
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{credential_versions, credentials};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
    SelectableHelper as _,
};
use vault_core::credential::Superseded;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{StoredVersion, StoredVersions};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const TABLE: &str = "credential_versions";

/// A version that is not current.
#[auto_type(no_type_alias)]
pub(super) fn version_of(organization: IdBytes, id: IdBytes, number: i64) -> _ {
    credential_versions::table
        .filter(credential_versions::organization_id.eq(organization))
        .filter(credential_versions::id.eq(id))
        .filter(credential_versions::version.eq(number))
}

type Version = (i64, i64, Option<i64>, Option<i64>, CheckColumns, Column<KeyId>, Vec<u8>);

/// Reads a credential with its versions, in one statement.
pub(crate) async fn versions(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<Option<StoredVersions>, Failure> {
    let of_both = credential_versions::organization_id.eq(credentials::organization_id);
    let joined = credentials::table
        .left_join(credential_versions::table.on(of_both.and(credential_versions::id.eq(credentials::id))))
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(credentials::id.eq(id.stored()))
        .order(credential_versions::version)
        .select((
            CredentialRow::as_select(),
            credentials::version_created_at,
            (
                credential_versions::version,
                credential_versions::created_at,
                credential_versions::superseded_at,
                credential_versions::destroy_at,
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
                credential_versions::key_id,
                credential_versions::information,
            )
                .nullable(),
        ));
    let rows = tx.load::<(CredentialRow, i64, Option<Version>), _>(joined).await?;
    let mut current = None;
    let mut others = Vec::new();
    for (row, created_at, version) in rows {
        current.get_or_insert((row, created_at));
        others.extend(version);
    }
    let Some((current, created_at)) = current else { return Ok(None) };
    Ok(Some(StoredVersions {
        created_at: Timestamp::from_millis(created_at),
        current: current.decode()?,
        others: others.into_iter().map(|version| decode(version, id)).collect::<Result<_, Failure>>()?,
    }))
}

fn decode(version: Version, credential: CredentialId) -> Result<StoredVersion, Failure> {
    let (number, created_at, superseded_at, destroy_at, check, key, information) = version;
    let superseded = superseded_at.zip(destroy_at).map(|(at, destroy_at)| Superseded {
        at: Timestamp::from_millis(at),
        destroy_at: Timestamp::from_millis(destroy_at),
    });
    Ok(StoredVersion {
        number,
        created_at: Timestamp::from_millis(created_at),
        superseded,
        check: row::check(check, TABLE, credential)?,
        key: key.decode(TABLE, &credential, "key_id")?,
        information: Blob::from_bytes(information),
    })
}
