//! Addresses, by which accounts and invitations are found before their organization is known. An address has either one
//! account in all organizations, or at most one invitation in each organization.
//!
//! While a lookup key is replaced, an address has a digest under each key. A lookup always searches all of them, so
//! that the number of statements discloses nothing. A new address is also entered under the keys that other processes
//! may search.

use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{directory, invited_addresses};
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::digest::{Digest, LookupDigests};
use vault_core::id::{AccountId, OrganizationId};

type Entry = (Column<OrganizationId>, Column<AccountId>);

/// Finds the account of an address.
pub(crate) async fn account_of(
    tx: &Tx<'_>,
    address: &LookupDigests,
) -> Result<Option<(OrganizationId, AccountId)>, Failure> {
    account_under(tx, address.all()).await
}

async fn account_under(tx: &Tx<'_>, digests: &[Digest]) -> Result<Option<(OrganizationId, AccountId)>, Failure> {
    let mut found = None;
    for digest in digests {
        let entry = directory::table
            .filter(directory::address.eq(digest.as_bytes().as_slice()))
            .select((directory::organization_id, directory::account_id));
        found = found.or(tx.first::<Entry, _>(entry).await?);
    }
    found.map(|entry| decode("directory", entry)).transpose()
}

/// Finds the invitations of an address.
pub(crate) async fn invitations_of(
    tx: &Tx<'_>,
    address: &LookupDigests,
) -> Result<Vec<(OrganizationId, AccountId)>, Failure> {
    let mut found = Vec::new();
    for digest in address.all() {
        let entries = invited_addresses::table
            .filter(invited_addresses::address.eq(digest.as_bytes().as_slice()))
            .order(invited_addresses::organization_id)
            .select((invited_addresses::organization_id, invited_addresses::account_id));
        for entry in tx.load::<Entry, _>(entries).await? {
            let entry = decode("invited_addresses", entry)?;
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

/// Finds the invitation of an address in an organization.
pub(crate) async fn invitation_of(
    tx: &Tx<'_>,
    address: &LookupDigests,
    organization: OrganizationId,
) -> Result<Option<AccountId>, Failure> {
    invitation_under(tx, address.all(), organization).await
}

async fn invitation_under(
    tx: &Tx<'_>,
    digests: &[Digest],
    organization: OrganizationId,
) -> Result<Option<AccountId>, Failure> {
    let mut found = None;
    for digest in digests {
        let entry = invited_addresses::table
            .filter(invited_addresses::address.eq(digest.as_bytes().as_slice()))
            .filter(invited_addresses::organization_id.eq(organization.stored()))
            .select((invited_addresses::organization_id, invited_addresses::account_id));
        found = found.or(tx.first::<Entry, _>(entry).await?);
    }
    found.map(|entry| decode("invited_addresses", entry).map(|(_, account)| account)).transpose()
}

fn decode(table: &'static str, (organization, account): Entry) -> Result<(OrganizationId, AccountId), Failure> {
    let account = account.decode(table, &"unknown", "account_id")?;
    Ok((organization.decode(table, &account, "organization_id")?, account))
}

/// Enters the address of an account. Returns `false` if another account has it. Then nothing remains written.
///
/// Until it is [removed](remove) or the transaction ends, other transactions cannot create an account of the address.
pub(crate) async fn enter(
    tx: &Tx<'_>,
    address: &LookupDigests,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    for digest in address.entered() {
        if !enter_digest(tx, digest, organization, account).await? {
            remove(tx, organization, account).await?;
            return Ok(false);
        }
    }
    // Another account may still be indexed under a retired lookup key that has not been rekeyed.
    let is_free = account_under(tx, address.others()).await?.is_none();
    if !is_free {
        remove(tx, organization, account).await?;
    }
    Ok(is_free)
}

/// Enters one digest of an account's address. Returns `false` if an account is entered under it.
async fn enter_digest(
    tx: &Tx<'_>,
    digest: &Digest,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    let entry = diesel::insert_into(directory::table)
        .values((
            directory::address.eq(digest.as_bytes().as_slice()),
            directory::organization_id.eq(organization.stored()),
            directory::account_id.eq(account.stored()),
        ))
        .on_conflict_do_nothing();
    Ok(tx.execute(entry).await? == 1)
}

/// Enters the address of an invitation. Returns `false` if the organization has another invitation of it.
pub(crate) async fn enter_invited(
    tx: &Tx<'_>,
    address: &LookupDigests,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    for digest in address.entered() {
        if !enter_invited_digest(tx, digest, organization, account).await? {
            return Ok(false);
        }
    }
    Ok(invitation_under(tx, address.others(), organization).await?.is_none())
}

async fn enter_invited_digest(
    tx: &Tx<'_>,
    digest: &Digest,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    let entry = diesel::insert_into(invited_addresses::table)
        .values((
            invited_addresses::address.eq(digest.as_bytes().as_slice()),
            invited_addresses::organization_id.eq(organization.stored()),
            invited_addresses::account_id.eq(account.stored()),
        ))
        .on_conflict_do_nothing();
    Ok(tx.execute(entry).await? == 1)
}

/// Removes the address of an account that the transaction deletes, or for which it entered the address.
pub(crate) async fn remove(tx: &Tx<'_>, organization: OrganizationId, account: AccountId) -> Result<(), Failure> {
    let entries = directory::table
        .filter(directory::organization_id.eq(organization.stored()))
        .filter(directory::account_id.eq(account.stored()));
    tx.execute(diesel::delete(entries)).await?;
    Ok(())
}

/// Removes the address of an invitation that the transaction removes.
pub(crate) async fn remove_invited(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<(), Failure> {
    let entries = invited_addresses::table
        .filter(invited_addresses::organization_id.eq(organization.stored()))
        .filter(invited_addresses::account_id.eq(account.stored()));
    tx.execute(diesel::delete(entries)).await?;
    Ok(())
}

/// Replaces all digests by which an account is found with this one. Returns whether anything was changed.
pub(crate) async fn move_account(
    tx: &Tx<'_>,
    digest: &Digest,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    // The new digest first: a transaction that enters the address concurrently conflicts with one of the two.
    let entered = enter_digest(tx, digest, organization, account).await?;
    let others = directory::table
        .filter(directory::organization_id.eq(organization.stored()))
        .filter(directory::account_id.eq(account.stored()))
        .filter(directory::address.ne(digest.as_bytes().as_slice()));
    let removed = tx.execute(diesel::delete(others)).await?;
    Ok(entered || removed > 0)
}

/// Replaces all digests by which an invitation is found with this one. Returns whether anything was changed.
pub(crate) async fn move_invitation(
    tx: &Tx<'_>,
    digest: &Digest,
    organization: OrganizationId,
    account: AccountId,
) -> Result<bool, Failure> {
    let entered = enter_invited_digest(tx, digest, organization, account).await?;
    let others = invited_addresses::table
        .filter(invited_addresses::organization_id.eq(organization.stored()))
        .filter(invited_addresses::account_id.eq(account.stored()))
        .filter(invited_addresses::address.ne(digest.as_bytes().as_slice()));
    let removed = tx.execute(diesel::delete(others)).await?;
    Ok(entered || removed > 0)
}
