//! The directory: where an address leads before its organization is known. An address is there once, over the
//! accounts and invitations of all organizations.

use super::super::backend::{Connection, RunQuery};
use super::invitation_row::remove_if_over;
use crate::failure::Failure;
use crate::schema::{accounts, directory};
use crate::stored::{Read, ToIdText as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::time::Timestamp;

type Entry = (Read<OrganizationId>, Read<AccountId>);

/// Where an address leads: to an account or an invitation.
pub(crate) async fn look_up(
    connection: &mut Connection,
    address: &Digest,
) -> Result<Option<(OrganizationId, AccountId)>, Failure> {
    let entry: Option<Entry> = directory::table
        .filter(directory::address.eq(address.as_bytes().as_slice()))
        .select((directory::organization_id, directory::account_id))
        .get_result(connection)
        .await
        .optional()?;
    entry.map(decode).transpose()
}

/// The account that an address leads to. Of one that is only invited there is nothing to be seen here: it takes
/// the same statements as an address that nobody has.
pub(crate) async fn look_up_account(
    connection: &mut Connection,
    address: &Digest,
) -> Result<Option<(OrganizationId, AccountId)>, Failure> {
    let entry: Option<Entry> =
        directory::table
            .inner_join(accounts::table.on(
                accounts::organization_id.eq(directory::organization_id).and(accounts::id.eq(directory::account_id)),
            ))
            .filter(directory::address.eq(address.as_bytes().as_slice()))
            .select((directory::organization_id, directory::account_id))
            .get_result(connection)
            .await
            .optional()?;
    entry.map(decode).transpose()
}

fn decode((organization, account): Entry) -> Result<(OrganizationId, AccountId), Failure> {
    let account = account.sound("directory", &"unknown", "account_id")?;
    Ok((organization.sound("directory", &account, "organization_id")?, account))
}

/// Enters an address. An invitation of the same address that is over goes. `false`: the address is taken.
pub(crate) async fn enter(
    connection: &mut Connection,
    address: &Digest,
    organization: OrganizationId,
    account: AccountId,
    now: Timestamp,
) -> Result<bool, Failure> {
    if insert(connection, address, organization, account).await? {
        return Ok(true);
    }
    if let Some((holder, invited)) = look_up(connection, address).await?
        && !remove_if_over(connection, holder, invited, now).await?
    {
        return Ok(false);
    }
    // Whoever was faster at this, or at sweeping, shows here.
    insert(connection, address, organization, account).await
}

async fn insert(
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
