//! Notices to the owner of an account.

use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::account_notices;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::time::Timestamp;

#[auto_type(no_type_alias)]
pub(crate) fn notices_of(organization: IdBytes, account: IdBytes) -> _ {
    account_notices::table
        .filter(account_notices::organization_id.eq(organization))
        .filter(account_notices::account_id.eq(account))
}

/// Stores a notice. An account has no notice twice at the same moment, and of some codes only the newest.
pub(crate) async fn leave(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
    code: NoticeCode,
    at: Timestamp,
) -> Result<(), Failure> {
    let stored = code.stored();
    if code.replaces_earlier() {
        let earlier = notices_of(organization.stored(), account.stored()).filter(account_notices::code.eq(&*stored));
        tx.execute(diesel::delete(earlier)).await?;
    }
    let new = diesel::insert_into(account_notices::table)
        .values((
            account_notices::organization_id.eq(organization.stored()),
            account_notices::account_id.eq(account.stored()),
            account_notices::at.eq(at.as_millis()),
            account_notices::code.eq(&*stored),
        ))
        .on_conflict_do_nothing();
    tx.execute(new).await?;
    Ok(())
}

/// Reads the notices of an account.
pub(crate) async fn read(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Vec<StoredNotice>, Failure> {
    let rows = notices_of(organization.stored(), account.stored()).select((account_notices::code, account_notices::at));
    let decode = |(code, at): (Column<NoticeCode>, i64)| {
        let code = code.decode("account_notices", &account, "code")?;
        Ok(StoredNotice { code, at: Timestamp::from_millis(at) })
    };
    tx.load(rows).await?.into_iter().map(decode).collect()
}
