//! Invitations and the drafts of enrolments.

use super::accounts::{directory, listing};
use super::{TxRows, several, then};
use crate::db::{Db, Reply as SqlReply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{enrolment_codes, enrolment_drafts, invitations};
use crate::stored::{AnyId, CodeColumns, Column, Digests, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::account::{AccountRights, AccountState};
use vault_core::digest::{Digest, LookupDigests};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, PasswordId, SeedId};
use vault_core::invitation::{EnrolmentDraft, Invitation, StoredInvitation};
use vault_core::operation::Access;
use vault_core::port::{AccountPlace, InvitationRows, Reply};
use vault_core::role::Role;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

const DRAFTS: &str = "enrolment_drafts";

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
fn draft_of(organization: IdBytes, account: IdBytes) -> _ {
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

/// Locks an invitation.
pub(crate) async fn lock(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<StoredInvitation>, Failure> {
    let row = invitation_of(organization.stored(), account.stored()).select(InvitationRow::as_select());
    tx.first(locked(row, Update)).await?.map(InvitationRow::decode).transpose()
}

/// Stores an invitation with its code. The address of an invitation that creates an account was entered before.
async fn insert(tx: &Tx<'_>, stored: &StoredInvitation) -> Result<(), Failure> {
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

/// Removes an invitation with its draft, its code and its address.
async fn remove(tx: &Tx<'_>, stored: &StoredInvitation) -> Result<(), Failure> {
    let Invitation { grant, code, .. } = &stored.invitation;
    remove_draft(tx, grant.organization, grant.account).await?;
    let code = enrolment_codes::table.filter(enrolment_codes::code.eq(code.as_bytes().as_slice()));
    tx.execute(diesel::delete(code)).await?;
    directory::remove_invited(tx, grant.organization, grant.account).await?;
    tx.execute(diesel::delete(invitation_of(grant.organization.stored(), grant.account.stored()))).await?;
    Ok(())
}

/// Removes a draft.
fn remove_draft<'t>(tx: &'t Tx<'_>, organization: OrganizationId, account: AccountId) -> SqlReply<'t, usize> {
    tx.execute(diesel::delete(draft_of(organization.stored(), account.stored())))
}

/// A draft.
#[derive(Queryable, Selectable)]
#[diesel(table_name = enrolment_drafts, check_for_backend(Db))]
pub(crate) struct DraftRow {
    password_id: Column<PasswordId>,
    password: Column<Blob>,
    seed_id: Column<SeedId>,
    seed: Column<Blob>,
    recovery_codes: Column<Digests>,
    #[diesel(select_expression = (enrolment_drafts::digest, enrolment_drafts::digest_key_id))]
    digest: CodeColumns,
}

impl DraftRow {
    pub(crate) fn decode(self, account: AccountId) -> Result<EnrolmentDraft, Failure> {
        let Digests(recovery_codes) = self.recovery_codes.decode(DRAFTS, &account, "recovery_codes")?;
        let id = self.password_id.decode(DRAFTS, &account, "password_id")?;
        let password = SealedPassword { id, blob: self.password.decode(DRAFTS, &account, "password")? };
        let id = self.seed_id.decode(DRAFTS, &account, "seed_id")?;
        let seed = SealedSeed { id, blob: self.seed.decode(DRAFTS, &account, "seed")? };
        Ok(EnrolmentDraft { password, seed, recovery_codes, digest: self.digest.decode(DRAFTS, &account, "digest")? })
    }
}

impl InvitationRows for TxRows<'_> {
    fn invitation(&self, (organization, account): AccountPlace) -> Reply<'_, Option<StoredInvitation>> {
        let row = invitation_of(organization.stored(), account.stored()).select(InvitationRow::as_select());
        let row = match self.access {
            Access::Read => self.tx.first(row),
            Access::Write => self.tx.first(locked(row, Update)),
        };
        then(row, |row: Option<InvitationRow>| row.map(InvitationRow::decode).transpose())
    }

    fn invitation_of(
        &self,
        address: &LookupDigests,
        organization: OrganizationId,
    ) -> Reply<'_, Option<StoredInvitation>> {
        let address = address.clone();
        several(async move {
            match directory::invitation_of(&self.tx, &address, organization).await? {
                Some(account) => lock(&self.tx, organization, account).await,
                None => Ok(None),
            }
        })
    }

    fn invitations_of(&self, address: &LookupDigests) -> Reply<'_, Vec<AccountPlace>> {
        let address = address.clone();
        several(async move { directory::invitations_of(&self.tx, &address).await })
    }

    fn invitation_by_code(&self, code: &Digest) -> Reply<'_, Option<StoredInvitation>> {
        let code = *code;
        several(async move {
            // Two statements: the invitation may be stored on another node than its code.
            let place = enrolment_codes::table
                .filter(enrolment_codes::code.eq(code.as_bytes().as_slice()))
                .select((enrolment_codes::organization_id, enrolment_codes::account_id));
            let Some((organization, account)) = self.tx.first::<(AnyId, AnyId), _>(place).await? else {
                return Ok(None);
            };
            let row = invitations::table
                .filter(invitations::organization_id.eq(organization))
                .filter(invitations::account_id.eq(account))
                .filter(invitations::code.eq(code.as_bytes().as_slice()))
                .select(InvitationRow::as_select());
            self.tx.first(row).await?.map(InvitationRow::decode).transpose()
        })
    }

    fn listed_invitations(
        &self,
        of: Option<OrganizationId>,
        after: Option<AccountPlace>,
        limit: usize,
        now: Timestamp,
    ) -> Reply<'_, Vec<StoredInvitation>> {
        several(async move {
            let (after, id) = listing::start(after);
            let open = invitations::table
                .filter(invitations::expires_at.gt(now.as_millis()))
                .filter(invitations::state.is_null())
                .select(InvitationRow::as_select());
            let rows: Vec<InvitationRow> = match of {
                Some(organization) => {
                    let own = open
                        .filter(invitations::organization_id.eq(organization.stored()))
                        .filter(invitations::account_id.lt(id))
                        .order(invitations::account_id.desc());
                    self.tx.page(own, limit).await?
                }
                None => {
                    let same = invitations::organization_id.eq(after).and(invitations::account_id.lt(id));
                    let all = open
                        .filter(invitations::organization_id.gt(after).or(same))
                        .order((invitations::organization_id, invitations::account_id.desc()));
                    self.tx.page(all, limit).await?
                }
            };
            rows.into_iter().map(InvitationRow::decode).collect()
        })
    }

    fn enter_invited(&self, address: &LookupDigests, (organization, account): AccountPlace) -> Reply<'_, bool> {
        let address = address.clone();
        several(async move { directory::enter_invited(&self.tx, &address, organization, account).await })
    }

    fn insert_invitation(&self, stored: &StoredInvitation) -> Reply<'_, ()> {
        let stored = stored.clone();
        several(async move { insert(&self.tx, &stored).await })
    }

    fn update_invitation(&self, stored: &StoredInvitation) -> Reply<'_, ()> {
        let grant = &stored.invitation.grant;
        let row = diesel::update(invitation_of(grant.organization.stored(), grant.account.stored())).set((
            invitations::email.eq(grant.email.as_str()),
            invitations::role.eq(grant.role.as_str()),
            invitations::digest.eq(stored.digest.code.as_bytes().as_slice()),
            invitations::digest_key_id.eq(stored.digest.key.stored()),
            invitations::version.eq(stored.version),
        ));
        then(self.tx.execute(row), |_| Ok(()))
    }

    fn remove_invitation(&self, stored: &StoredInvitation) -> Reply<'_, ()> {
        let stored = stored.clone();
        several(async move { remove(&self.tx, &stored).await })
    }

    fn draft(&self, (organization, account): AccountPlace) -> Reply<'_, Option<EnrolmentDraft>> {
        let row = draft_of(organization.stored(), account.stored()).select(DraftRow::as_select());
        then(self.tx.first(row), move |row: Option<DraftRow>| row.map(|row| row.decode(account)).transpose())
    }

    fn put_draft(&self, (organization, account): AccountPlace, draft: &EnrolmentDraft) -> Reply<'_, ()> {
        let draft = draft.clone();
        several(async move {
            remove_draft(&self.tx, organization, account).await?;
            let new = diesel::insert_into(enrolment_drafts::table).values((
                enrolment_drafts::organization_id.eq(organization.stored()),
                enrolment_drafts::account_id.eq(account.stored()),
                enrolment_drafts::password_id.eq(draft.password.id.stored()),
                enrolment_drafts::password.eq(draft.password.blob.as_bytes()),
                enrolment_drafts::seed_id.eq(draft.seed.id.stored()),
                enrolment_drafts::seed.eq(draft.seed.blob.as_bytes()),
                enrolment_drafts::recovery_codes.eq(Digests::bytes(&draft.recovery_codes)),
                enrolment_drafts::digest.eq(draft.digest.code.as_bytes().as_slice()),
                enrolment_drafts::digest_key_id.eq(draft.digest.key.stored()),
            ));
            self.tx.execute(new).await?;
            Ok(())
        })
    }
}
