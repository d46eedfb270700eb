//! Recovery codes, as digests.

use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::recovery_codes;
use crate::stored::{IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, Insertable, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};

#[derive(Insertable)]
#[diesel(table_name = recovery_codes, treat_none_as_default_value = false)]
struct NewCode<'a> {
    organization_id: IdBytes,
    account_id: IdBytes,
    code: &'a [u8],
}

#[auto_type(no_type_alias)]
pub(crate) fn recovery_codes_of(organization: IdBytes, account: IdBytes) -> _ {
    recovery_codes::table
        .filter(recovery_codes::organization_id.eq(organization))
        .filter(recovery_codes::account_id.eq(account))
}

/// Replaces the recovery codes of an account.
pub(crate) async fn replace(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
    codes: &[Digest],
) -> Result<(), Failure> {
    tx.execute(diesel::delete(recovery_codes_of(organization.stored(), account.stored()))).await?;
    let rows = codes.iter().map(|code| NewCode {
        organization_id: organization.stored(),
        account_id: account.stored(),
        code: code.as_bytes(),
    });
    tx.insert(recovery_codes::table, rows).await?;
    Ok(())
}
