//! Addresses, by which accounts are found before their organization is known.

use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::directory;
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::AccountPlace;

/// Finds the account of an address.
pub(crate) async fn account_of(tx: &Tx<'_>, address: &EmailAddress) -> Result<Option<AccountPlace>, Failure> {
    let entry = directory::table
        .filter(directory::address.eq(address.as_str()))
        .select((directory::organization_id, directory::account_id));
    let entry: Option<(Column<OrganizationId>, Column<AccountId>)> = tx.first(entry).await?;
    let Some((organization, account)) = entry else { return Ok(None) };
    let account = account.decode("directory", &"unknown", "account_id")?;
    Ok(Some((organization.decode("directory", &account, "organization_id")?, account)))
}

/// Enters the address of an account. Returns `false` if another account has it.
///
/// Until the transaction ends, other transactions cannot create an account of the address.
pub(super) async fn enter(
    tx: &Tx<'_>,
    address: &EmailAddress,
    (organization, account): AccountPlace,
) -> Result<bool, Failure> {
    let entry = diesel::insert_into(directory::table)
        .values((
            directory::address.eq(address.as_str()),
            directory::organization_id.eq(organization.stored()),
            directory::account_id.eq(account.stored()),
        ))
        .on_conflict_do_nothing();
    Ok(tx.execute(entry).await? == 1)
}

/// Removes the address of an account that the transaction deletes.
pub(super) async fn remove(tx: &Tx<'_>, (organization, account): AccountPlace) -> Result<(), Failure> {
    let entry = directory::table
        .filter(directory::organization_id.eq(organization.stored()))
        .filter(directory::account_id.eq(account.stored()));
    tx.execute(diesel::delete(entry)).await?;
    Ok(())
}
