//! Where an address leads before its organization is known: to one account over all organizations, or to invitations, at
//! most one of each organization.

use super::super::backend::{Connection, RunQuery};
use crate::failure::Failure;
use crate::schema::{accounts, directory, invited_addresses};
use crate::stored::{Column, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};

type Entry = (Column<OrganizationId>, Column<AccountId>);

/// The account of an address.
pub(crate) async fn account_of(
    connection: &mut Connection,
    address: &Digest,
) -> Result<Option<(OrganizationId, AccountId)>, Failure> {
    let entry: Option<Entry> = directory::table
        .filter(directory::address.eq(address.as_bytes().as_slice()))
        .select((directory::organization_id, directory::account_id))
        .get_result(connection)
        .await
        .optional()?;
    entry.map(|entry| decode("directory", entry)).transpose()
}

/// The invitations of an address.
pub(crate) async fn invitations_of(
    connection: &mut Connection,
    address: &Digest,
) -> Result<Vec<(OrganizationId, AccountId)>, Failure> {
    let entries: Vec<Entry> = invited_addresses::table
        .filter(invited_addresses::address.eq(address.as_bytes().as_slice()))
        .order(invited_addresses::organization_id)
        .select((invited_addresses::organization_id, invited_addresses::account_id))
        .load(connection)
        .await?;
    entries.into_iter().map(|entry| decode("invited_addresses", entry)).collect()
}

/// The invitation of an address in an organization.
pub(crate) async fn invitation_of(
    connection: &mut Connection,
    address: &Digest,
    organization: OrganizationId,
) -> Result<Option<AccountId>, Failure> {
    let entry: Option<Entry> = invited_addresses::table
        .filter(invited_addresses::address.eq(address.as_bytes().as_slice()))
        .filter(invited_addresses::organization_id.eq(organization.text()))
        .select((invited_addresses::organization_id, invited_addresses::account_id))
        .get_result(connection)
        .await
        .optional()?;
    entry.map(|entry| decode("invited_addresses", entry).map(|(_, account)| account)).transpose()
}

fn decode(table: &'static str, (organization, account): Entry) -> Result<(OrganizationId, AccountId), Failure> {
    let account = account.decode(table, &"unknown", "account_id")?;
    Ok((organization.decode(table, &account, "organization_id")?, account))
}

/// Enters the address of an account. `false`: another account has it; nothing was written.
pub(crate) async fn enter(
    connection: &mut Connection,
    address: &Digest,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    let entered = diesel::insert_into(directory::table)
        .values((
            directory::address.eq(address.as_bytes().as_slice()),
            directory::organization_id.eq(organization.text()),
            directory::account_id.eq(account.text()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    Ok(entered == 1)
}

/// Keeps everybody else from making an account of an address until [`release`], or the end of the decision. `false`: an
/// account has it.
pub(crate) async fn claim(
    connection: &mut Connection,
    address: &Digest,
    organization: OrganizationId,
    invited: AccountId,
) -> Result<bool, Failure> {
    enter(connection, address, organization, invited).await
}

/// Gives back an address that the same decision has claimed.
pub(crate) async fn release(connection: &mut Connection, address: &Digest, invited: AccountId) -> Result<(), Failure> {
    let claimed = directory::table
        .filter(directory::address.eq(address.as_bytes().as_slice()))
        .filter(directory::account_id.eq(invited.text()));
    diesel::delete(claimed).execute(connection).await?;
    Ok(())
}

/// Enters the address of an invitation. `false`: the organization has another invitation of it; nothing was written.
pub(crate) async fn enter_invited(
    connection: &mut Connection,
    address: &Digest,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    let entered = diesel::insert_into(invited_addresses::table)
        .values((
            invited_addresses::address.eq(address.as_bytes().as_slice()),
            invited_addresses::organization_id.eq(organization.text()),
            invited_addresses::account_id.eq(account.text()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    Ok(entered == 1)
}

/// Removes the address of an account that is deleted in the same decision.
pub(crate) async fn remove(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<(), Failure> {
    let address: Option<Vec<u8>> = accounts::table
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .select(accounts::address)
        .get_result(connection)
        .await
        .optional()?;
    if let Some(address) = address {
        diesel::delete(directory::table.filter(directory::address.eq(address))).execute(connection).await?;
    }
    Ok(())
}
