//! Notices: what an account's owner is told.

use super::super::backend::{Connection, RunQuery};
use crate::failure::Failure;
use crate::schema::account_notices;
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::time::Timestamp;

/// Leaves a notice; part of the decision that it tells of. There is none twice at the same moment, and of some codes only
/// the newest.
pub(crate) async fn leave(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    code: NoticeCode,
    at: Timestamp,
) -> Result<(), Failure> {
    let stored = code.stored();
    if code.replaces_earlier() {
        diesel::delete(
            account_notices::table
                .filter(account_notices::organization_id.eq(organization.stored()))
                .filter(account_notices::account_id.eq(account.stored()))
                .filter(account_notices::code.eq(&*stored)),
        )
        .execute(connection)
        .await?;
    }
    diesel::insert_into(account_notices::table)
        .values((
            account_notices::organization_id.eq(organization.stored()),
            account_notices::account_id.eq(account.stored()),
            account_notices::at.eq(at.as_millis()),
            account_notices::code.eq(&*stored),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    Ok(())
}

/// The account's notices.
pub(crate) async fn of(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Vec<StoredNotice>, Failure> {
    let rows: Vec<(Column<NoticeCode>, i64)> = account_notices::table
        .filter(account_notices::organization_id.eq(organization.stored()))
        .filter(account_notices::account_id.eq(account.stored()))
        .select((account_notices::code, account_notices::at))
        .load(connection)
        .await?;
    let decode = |(code, at): (Column<NoticeCode>, i64)| {
        let code = code.decode("account_notices", &account, "code")?;
        Ok(StoredNotice { code, at: Timestamp::from_millis(at) })
    };
    rows.into_iter().map(decode).collect()
}
