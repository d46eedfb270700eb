//! The rows of an invitation: its own, its address's, its code's and its draft's.

use super::super::backend::{Connection, RunQuery, for_update};
use super::directory;
use crate::failure::Failure;
use crate::schema::{enrolment_codes, enrolment_drafts, invitations};
use crate::stored::{CodeColumns, Column, StoredId as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::digest::{Digest, LookUpDigests};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::invitation::{Invitation, StoredInvitation};
use vault_core::role::Role;
use vault_core::time::Timestamp;

#[derive(Queryable)]
pub(crate) struct InvitationRow {
    organization: Column<OrganizationId>,
    account: Column<AccountId>,
    email: Column<EmailAddress>,
    role: Column<Role>,
    code: Column<Digest>,
    digest: CodeColumns,
    version: i64,
    created_at: i64,
    expires_at: i64,
    state: Option<Column<AccountState>>,
}

/// The columns of [`InvitationRow`].
macro_rules! columns {
    () => {
        (
            invitations::organization_id,
            invitations::account_id,
            invitations::email,
            invitations::role,
            invitations::code,
            (invitations::digest, invitations::digest_key_id),
            invitations::version,
            invitations::created_at,
            invitations::expires_at,
            invitations::state,
        )
    };
}

pub(crate) use columns;

/// The row of an invitation.
macro_rules! row_of {
    ($organization:expr, $account:expr) => {
        invitations::table
            .filter(invitations::organization_id.eq($organization.stored()))
            .filter(invitations::account_id.eq($account.stored()))
    };
}

impl InvitationRow {
    pub(crate) fn decode(self) -> Result<StoredInvitation, Failure> {
        const TABLE: &str = "invitations";
        let account = self.account.decode(TABLE, &"unknown", "account_id")?;
        let grant = AccountGrant {
            account,
            organization: self.organization.decode(TABLE, &account, "organization_id")?,
            email: self.email.decode(TABLE, &account, "email")?,
            role: self.role.decode(TABLE, &account, "role")?,
            state: match self.state {
                Some(state) => state.decode(TABLE, &account, "state")?,
                None => AccountState::Invited,
            },
        };
        let invitation = Invitation {
            grant,
            code: self.code.decode(TABLE, &account, "code")?,
            created_at: Timestamp::from_millis(self.created_at),
            expires_at: Timestamp::from_millis(self.expires_at),
        };
        let digest = self.digest.decode(TABLE, &account, "digest")?;
        Ok(StoredInvitation { invitation, digest, version: self.version })
    }
}

/// Reads an invitation.
pub(crate) async fn get(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<StoredInvitation>, Failure> {
    let row: Option<InvitationRow> =
        row_of!(organization, account).select(columns!()).get_result(connection).await.optional()?;
    row.map(InvitationRow::decode).transpose()
}

/// Takes an invitation, to change it.
pub(crate) async fn hold(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<StoredInvitation>, Failure> {
    let row: Option<InvitationRow> =
        for_update!(row_of!(organization, account).select(columns!())).get_result(connection).await.optional()?;
    row.map(InvitationRow::decode).transpose()
}

/// Takes the organization's invitation of an address.
pub(crate) async fn hold_by_address(
    connection: &mut Connection,
    address: &LookUpDigests,
    organization: OrganizationId,
) -> Result<Option<StoredInvitation>, Failure> {
    match directory::invitation_of(connection, address, organization).await? {
        Some(account) => hold(connection, organization, account).await,
        None => Ok(None),
    }
}

/// Stores an invitation with its code. The address of one that makes an account was entered before.
pub(crate) async fn insert(connection: &mut Connection, stored: &StoredInvitation) -> Result<(), Failure> {
    let StoredInvitation { invitation, digest, version } = stored;
    let (organization, account) = (invitation.grant.organization.stored(), invitation.grant.account.stored());
    diesel::insert_into(invitations::table)
        .values((
            invitations::organization_id.eq(organization),
            invitations::account_id.eq(account),
            invitations::email.eq(invitation.grant.email.as_str()),
            invitations::role.eq(invitation.grant.role.as_str()),
            invitations::code.eq(invitation.code.as_bytes().as_slice()),
            invitations::digest.eq(digest.code.as_bytes().as_slice()),
            invitations::digest_key_id.eq(digest.key.stored()),
            invitations::version.eq(version),
            invitations::created_at.eq(invitation.created_at.as_millis()),
            invitations::expires_at.eq(invitation.expires_at.as_millis()),
            invitations::state.eq(invitation.re_enrols().then_some(invitation.grant.state.as_str())),
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
pub(crate) async fn update(connection: &mut Connection, after: &StoredInvitation) -> Result<(), Failure> {
    let grant = &after.invitation.grant;
    crate::update::update(row_of!(grant.organization, grant.account))
        .set((
            invitations::email.eq(grant.email.as_str()),
            invitations::role.eq(grant.role.as_str()),
            invitations::digest.eq(after.digest.code.as_bytes().as_slice()),
            invitations::digest_key_id.eq(after.digest.key.stored()),
            invitations::version.eq(after.version),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes an invitation with all that belongs to it.
pub(crate) async fn remove(connection: &mut Connection, held: &StoredInvitation) -> Result<(), Failure> {
    let Invitation { grant, code, .. } = &held.invitation;
    remove_draft(connection, grant.organization, grant.account).await?;
    diesel::delete(enrolment_codes::table.filter(enrolment_codes::code.eq(code.as_bytes().as_slice())))
        .execute(connection)
        .await?;
    directory::remove_invited(connection, grant.organization, grant.account).await?;
    diesel::delete(row_of!(grant.organization, grant.account)).execute(connection).await?;
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
            .filter(enrolment_drafts::organization_id.eq(organization.stored()))
            .filter(enrolment_drafts::account_id.eq(account.stored())),
    )
    .execute(connection)
    .await?;
    Ok(())
}
