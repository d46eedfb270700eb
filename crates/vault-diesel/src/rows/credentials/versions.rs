//! The versions of a credential, without their data.

use super::row::{self, CheckColumns, CredentialRow};
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials};
use crate::stored::StoredId as _;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
    SelectableHelper as _,
};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{StoredVersion, StoredVersions};
use vault_core::time::Timestamp;

type Version = (i64, Option<i64>, CheckColumns);

/// Reads a credential with its versions, in one statement.
pub(crate) async fn versions(
    tx: &Tx<'_>,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<Option<StoredVersions>, Failure> {
    let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
    let of_both = of_both.and(credential_secrets::id.eq(credentials::id));
    let is_other = credential_secrets::version.ne(credentials::version);
    let joined = credentials::table
        .left_join(credential_secrets::table.on(of_both.and(is_other)))
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(credentials::id.eq(id.stored()))
        .order(credential_secrets::version)
        .select((
            CredentialRow::as_select(),
            (
                credential_secrets::version,
                credential_secrets::destroy_at,
                (credential_secrets::checked_at, credential_secrets::check_since, credential_secrets::check_failed),
            )
                .nullable(),
        ));
    let mut current = None;
    let mut others = Vec::new();
    for (row, version) in tx.load::<(CredentialRow, Option<Version>), _>(joined).await? {
        current.get_or_insert(row);
        others.extend(version);
    }
    let Some(current) = current else { return Ok(None) };
    let decode = |(number, destroy_at, check): Version| {
        let check = row::check(check, "credential_secrets", id)?;
        Ok(StoredVersion { number, destroy_at: destroy_at.map(Timestamp::from_millis), check })
    };
    let others = others.into_iter().map(decode).collect::<Result<_, Failure>>()?;
    Ok(Some(StoredVersions { current: current.decode()?, others }))
}
