//! The rows of an invitation: its own, its address's, its code's and its draft's.

use super::directory;
use crate::db::{Db, Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{enrolment_codes, enrolment_drafts, invitations};
use crate::stored::{CodeColumns, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::account::{AccountRights, AccountState};
use vault_core::digest::{Digest, LookupDigests};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::invitation::{Invitation, StoredInvitation};
use vault_core::role::Role;
use vault_core::time::Timestamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = invitations, check_for_backend(Db))]
pub(crate) struct InvitationRow {
    organization_id: Column<OrganizationId>,
    account_id: Column<AccountId>,
    email: Column<EmailAddress>,
    role: Column<Role>,
    code: Column<Digest>,
    #[diesel(select_expression = (invitations::digest, invitations::digest_key_id))]
    digest: CodeColumns,
    version: i64,
    created_at: i64,
    expires_at: i64,
    state: Option<Column<AccountState>>,
    invited_by: Option<Column<AccountId>>,
}

#[auto_type(no_type_alias)]
fn invitation_of(organization: IdBytes, account: IdBytes) -> _ {
    invitations::table.filter(invitations::organization_id.eq(organization)).filter(invitations::account_id.eq(account))
}

#[auto_type(no_type_alias)]
pub(super) fn draft_of(organization: IdBytes, account: IdBytes) -> _ {
    enrolment_drafts::table
        .filter(enrolment_drafts::organization_id.eq(organization))
        .filter(enrolment_drafts::account_id.eq(account))
}

impl InvitationRow {
    pub(crate) fn decode(self) -> Result<StoredInvitation, Failure> {
        const TABLE: &str = "invitations";
        let account = self.account_id.decode(TABLE, &"unknown", "account_id")?;
        let grant = AccountRights {
            account,
            organization: self.organization_id.decode(TABLE, &account, "organization_id")?,
            email: self.email.decode(TABLE, &account, "email")?,
            role: self.role.decode(TABLE, &account, "role")?,
            state: match self.state {
                Some(state) => state.decode(TABLE, &account, "state")?,
                None => AccountState::Invited,
            },
        };
        let invited_by = self.invited_by.map(|inviter| inviter.decode(TABLE, &account, "invited_by"));
        let invitation = Invitation {
            grant,
            invited_by: invited_by.transpose()?,
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
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<StoredInvitation>, Failure> {
    let row = invitation_of(organization.stored(), account.stored()).select(InvitationRow::as_select());
    tx.first(row).await?.map(InvitationRow::decode).transpose()
}

/// Locks an invitation.
pub(crate) async fn lock(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<StoredInvitation>, Failure> {
    let row = invitation_of(organization.stored(), account.stored()).select(InvitationRow::as_select());
    tx.first(locked(row, Update)).await?.map(InvitationRow::decode).transpose()
}

/// Locks the organization's invitation of an address.
pub(crate) async fn lock_by_address(
    tx: &Tx<'_>,
    address: &LookupDigests,
    organization: OrganizationId,
) -> Result<Option<StoredInvitation>, Failure> {
    match directory::invitation_of(tx, address, organization).await? {
        Some(account) => lock(tx, organization, account).await,
        None => Ok(None),
    }
}

/// Stores an invitation with its code. The address of an invitation that creates an account was entered before.
pub(crate) async fn insert(tx: &Tx<'_>, stored: &StoredInvitation) -> Result<(), Failure> {
    let StoredInvitation { invitation, digest, version } = stored;
    let (organization, account) = (invitation.grant.organization.stored(), invitation.grant.account.stored());
    let new = diesel::insert_into(invitations::table).values((
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
        invitations::invited_by.eq(invitation.invited_by.map(|inviter| inviter.stored())),
    ));
    tx.execute(new).await?;
    let code = diesel::insert_into(enrolment_codes::table).values((
        enrolment_codes::code.eq(invitation.code.as_bytes().as_slice()),
        enrolment_codes::organization_id.eq(organization),
        enrolment_codes::account_id.eq(account),
    ));
    tx.execute(code).await?;
    Ok(())
}

/// Replaces what an invitation grants.
pub(crate) fn update<'t>(tx: &'t Tx<'_>, after: &StoredInvitation) -> Reply<'t, usize> {
    let grant = &after.invitation.grant;
    tx.execute(diesel::update(invitation_of(grant.organization.stored(), grant.account.stored())).set((
        invitations::email.eq(grant.email.as_str()),
        invitations::role.eq(grant.role.as_str()),
        invitations::digest.eq(after.digest.code.as_bytes().as_slice()),
        invitations::digest_key_id.eq(after.digest.key.stored()),
        invitations::version.eq(after.version),
    )))
}

/// Removes an invitation with its draft, its code and its address.
pub(crate) async fn remove(tx: &Tx<'_>, stored: &StoredInvitation) -> Result<(), Failure> {
    let Invitation { grant, code, .. } = &stored.invitation;
    remove_draft(tx, grant.organization, grant.account).await?;
    let code = enrolment_codes::table.filter(enrolment_codes::code.eq(code.as_bytes().as_slice()));
    tx.execute(diesel::delete(code)).await?;
    directory::remove_invited(tx, grant.organization, grant.account).await?;
    tx.execute(diesel::delete(invitation_of(grant.organization.stored(), grant.account.stored()))).await?;
    Ok(())
}

/// Removes a draft.
pub(crate) fn remove_draft<'t>(tx: &'t Tx<'_>, organization: OrganizationId, account: AccountId) -> Reply<'t, usize> {
    tx.execute(diesel::delete(draft_of(organization.stored(), account.stored())))
}
