//! The rows of an invitation: its own, its code's, its draft's and its address's.

use super::super::backend::{Connection, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::{directory, enrolment_codes, enrolment_drafts, invitations};
use crate::stored::{Read, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::invitation::{Invitation, StoredInvitation};
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// The version of an invitation when it is made.
const FIRST_VERSION: i64 = 1;

pub(crate) type InvitationRow =
    (Read<OrganizationId>, Read<AccountId>, Read<EmailAddress>, Read<Role>, Read<Digest>, Read<Digest>, i64, i64, i64);

macro_rules! columns {
    () => {
        (
            invitations::organization_id,
            invitations::account_id,
            invitations::email,
            invitations::role,
            invitations::code,
            invitations::digest,
            invitations::version,
            invitations::created_at,
            invitations::expires_at,
        )
    };
}

pub(crate) use columns;

/// An invitation that is held, with its address.
pub(crate) struct Held {
    pub(crate) stored: StoredInvitation,
    pub(crate) address: Digest,
}

/// The row of an invitation.
macro_rules! row_of {
    ($organization:expr, $account:expr) => {
        invitations::table
            .filter(invitations::organization_id.eq($organization.text()))
            .filter(invitations::account_id.eq($account.text()))
    };
}

pub(crate) fn decode(row: InvitationRow) -> Result<StoredInvitation, Failure> {
    const TABLE: &str = "invitations";
    let (organization, account, email, role, code, digest, version, created_at, expires_at) = row;
    let account = account.sound(TABLE, &"unknown", "account_id")?;
    let grant = AccountGrant {
        account,
        organization: organization.sound(TABLE, &account, "organization_id")?,
        email: email.sound(TABLE, &account, "email")?,
        role: role.sound(TABLE, &account, "role")?,
        state: AccountState::Invited,
    };
    let invitation = Invitation {
        grant,
        code: code.sound(TABLE, &account, "code")?,
        created_at: Timestamp::from_millis(created_at),
        expires_at: Timestamp::from_millis(expires_at),
    };
    Ok(StoredInvitation { invitation, digest: digest.sound(TABLE, &account, "digest")?, version })
}

/// Reads an invitation.
pub(crate) async fn get(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<StoredInvitation>, Failure> {
    let row: Option<InvitationRow> =
        row_of!(organization, account).select(columns!()).get_result(connection).await.optional()?;
    row.map(decode).transpose()
}

/// Takes an invitation, to change it.
pub(crate) async fn hold(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<Held>, Failure> {
    let row: Option<(InvitationRow, Read<Digest>)> =
        for_update!(row_of!(organization, account).select((columns!(), invitations::address)))
            .get_result(connection)
            .await
            .optional()?;
    let Some((row, address)) = row else { return Ok(None) };
    let address = address.sound("invitations", &account, "address")?;
    Ok(Some(Held { stored: decode(row)?, address }))
}

/// Stores an invitation with its code.
pub(crate) async fn insert(
    connection: &mut Connection,
    invitation: &Invitation,
    digest: &Digest,
    address: &Digest,
) -> Result<(), Failure> {
    let (organization, account) = (invitation.grant.organization.text(), invitation.grant.account.text());
    diesel::insert_into(invitations::table)
        .values((
            invitations::organization_id.eq(organization),
            invitations::account_id.eq(account),
            invitations::address.eq(address.as_bytes().as_slice()),
            invitations::email.eq(invitation.grant.email.as_str()),
            invitations::role.eq(invitation.grant.role.as_str()),
            invitations::code.eq(invitation.code.as_bytes().as_slice()),
            invitations::digest.eq(digest.as_bytes().as_slice()),
            invitations::version.eq(FIRST_VERSION),
            invitations::created_at.eq(invitation.created_at.as_millis()),
            invitations::expires_at.eq(invitation.expires_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    diesel::insert_into(enrolment_codes::table)
        .values((
            enrolment_codes::code.eq(invitation.code.as_bytes().as_slice()),
            enrolment_codes::organization_id.eq(organization),
            enrolment_codes::account_id.eq(account),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Replaces what an invitation grants.
pub(crate) async fn update(
    connection: &mut Connection,
    held: &Held,
    grant: &AccountGrant,
    digest: &Digest,
) -> Result<(), Failure> {
    let before = &held.stored.invitation.grant;
    diesel::update(row_of!(before.organization, before.account))
        .set((
            invitations::email.eq(grant.email.as_str()),
            invitations::role.eq(grant.role.as_str()),
            invitations::digest.eq(digest.as_bytes().as_slice()),
            invitations::version.eq(held.stored.version + 1),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes an invitation with its code and its draft; its address stays.
pub(crate) async fn remove(connection: &mut Connection, held: &Held) -> Result<(), Failure> {
    let Invitation { grant, code, .. } = &held.stored.invitation;
    remove_draft(connection, grant.organization, grant.account).await?;
    diesel::delete(enrolment_codes::table.filter(enrolment_codes::code.eq(code.as_bytes().as_slice())))
        .execute(connection)
        .await?;
    diesel::delete(row_of!(grant.organization, grant.account)).execute(connection).await?;
    Ok(())
}

/// Removes an invitation with all that belongs to it; its address is free.
pub(crate) async fn remove_with_address(connection: &mut Connection, held: &Held) -> Result<(), Failure> {
    remove(connection, held).await?;
    diesel::delete(
        directory::table
            .filter(directory::address.eq(held.address.as_bytes().as_slice()))
            .filter(directory::account_id.eq(held.stored.invitation.grant.account.text())),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes what was drafted.
pub(crate) async fn remove_draft(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<(), Failure> {
    diesel::delete(
        enrolment_drafts::table
            .filter(enrolment_drafts::organization_id.eq(organization.text()))
            .filter(enrolment_drafts::account_id.eq(account.text())),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes an invitation that is over, its address included. `false`: it is open.
pub(crate) async fn remove_if_over(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    now: Timestamp,
) -> Result<bool, Failure> {
    match hold(connection, organization, account).await? {
        Some(held) if held.stored.invitation.is_open(now) => Ok(false),
        Some(held) => remove_with_address(connection, &held).await.map(|()| true),
        None => Ok(true),
    }
}
