//! Invitations.

use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock, lock_existing_organization};
use super::super::instance_key::require_active;
use super::super::{Read, Transaction, hourly};
use super::create::has_room;
use super::invitation_row::{self, InvitationRow};
use super::row::{self, SignedRow, account_of};
use super::{directory, enrolment};
use crate::db::Tx;
use crate::failure::Failure;
use crate::schema::{accounts, enrolment_codes, invitations, lookups};
use crate::stored::{AnyId, CodeColumns, Column, StoredId as _};
use diesel::{ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _, SelectableHelper as _};
use vault_core::account::{ACCOUNT_LIMIT_REACHED, SignedAccount};
use vault_core::digest::{Digest, RowMac};
use vault_core::entity::Index;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::organization::OrganizationState;
use vault_core::port::{ChangeInvitation, CreateInvitation, InvitationChange, OpenInvitation};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

impl Transaction for Command<CreateInvitation> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let Self { principal, now, payload, .. } = self;
        let grant = &payload.stored.invitation.grant;
        let organization = grant.organization;
        require_active(tx, [payload.stored.digest.key]).await?;
        if !principal.reaches(organization) || !lock_existing_organization(tx, organization).await? {
            return Err(Refusal::NoOrganization.into());
        }
        if *principal != Principal::Operator {
            let conflicts = hourly::lock(tx, organization, hourly::ADDRESS_CONFLICTS, *now).await?;
            if let Some(seconds) = conflicts.refused_for(HourlyLimit::ADDRESS_CONFLICTS, *now) {
                return Err(Refusal::TooManyConflicts(seconds).into());
            }
        }
        if directory::account_of(tx, &payload.address).await?.is_some() {
            return Err(address_in_use(tx, self, audit).await?.into());
        }
        let invited = invitation_row::lock_by_address(tx, &payload.address, organization).await?;
        if invited.as_ref().is_some_and(|invited| invited.invitation.is_open(*now)) {
            return Err(Refusal::AlreadyInvited.into());
        }
        if !has_room(tx, organization).await? {
            return Err(ACCOUNT_LIMIT_REACHED.into());
        }
        // Until it is removed below, no other transaction creates an account of the address.
        if !directory::enter(tx, &payload.address, organization, grant.account).await? {
            return Err(address_in_use(tx, self, audit).await?.into());
        }
        if let Some(expired) = invited {
            invitation_row::remove(tx, &expired).await?;
        }
        if !directory::enter_invited(tx, &payload.address, organization, grant.account).await? {
            return Err(Refusal::AlreadyInvited.into());
        }
        invitation_row::insert(tx, &payload.stored).await?;
        directory::remove(tx, organization, grant.account).await?;
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

/// Counts and records that an address of an account was invited. Returns the refusal.
async fn address_in_use(
    tx: &Tx<'_>,
    command: &Command<CreateInvitation>,
    audit: &mut AuditRecorder,
) -> Result<Refusal, Failure> {
    // An operator may know every address.
    if command.principal != Principal::Operator {
        let organization = command.payload.stored.invitation.grant.organization;
        let conflicts = hourly::lock(tx, organization, hourly::ADDRESS_CONFLICTS, command.now).await?;
        hourly::set(tx, organization, hourly::ADDRESS_CONFLICTS, conflicts.plus_one(command.now)).await?;
    }
    audit.record_refusal(tx, &command.payload.address_in_use).await?;
    Ok(Refusal::AddressInUse)
}

/// The open invitation of an enrolment code.
pub(crate) struct FindInvitation {
    pub(crate) code: Digest,
    pub(crate) now: Timestamp,
}

impl Read for FindInvitation {
    type Outcome = Option<OpenInvitation>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<OpenInvitation>, Failure> {
        let code = self.code.as_bytes().as_slice();
        // Two statements: the invitation may be stored on another node than its code.
        let place = enrolment_codes::table
            .filter(enrolment_codes::code.eq(code))
            .select((enrolment_codes::organization_id, enrolment_codes::account_id));
        let Some((organization, account)) = tx.first::<(AnyId, AnyId), _>(place).await? else { return Ok(None) };
        let row = invitations::table
            .inner_join(lookups::table.on(lookups::organization_id.eq(invitations::organization_id)))
            .filter(lookups::name.eq(Index::OrganizationState.as_str()))
            .filter(invitations::organization_id.eq(organization))
            .filter(invitations::account_id.eq(account))
            .filter(invitations::code.eq(code))
            .select((InvitationRow::as_select(), lookups::value));
        type Row = (InvitationRow, Column<OrganizationState>);
        let Some((row, state)) = tx.first::<Row, _>(row).await? else { return Ok(None) };
        let stored = row.decode()?;
        let (organization, account) = (stored.invitation.grant.organization, stored.invitation.grant.account);
        let is_active = state.decode("lookups", &organization, "value")? == OrganizationState::Active;
        if !is_active || !stored.invitation.is_open(self.now) {
            return Ok(None);
        }
        let draft = enrolment::read_draft(tx, organization, account).await?;
        let re_enrolled = match stored.invitation.re_enrols() {
            true => signed_account(tx, organization, account).await?,
            false => None,
        };
        let invited_by = match stored.invitation.invited_by {
            Some(inviter) => signed_account(tx, organization, inviter).await?,
            None => None,
        };
        Ok(Some(OpenInvitation { stored, invited_by, draft, account: re_enrolled }))
    }
}

/// Reads an account with the MAC of its row.
async fn signed_account(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<(SignedAccount, RowMac)>, Failure> {
    let row = account_of(organization.stored(), account.stored())
        .select((SignedRow::as_select(), (accounts::grant_digest, accounts::grant_key_id)));
    let Some((signed, digest)) = tx.first::<(SignedRow, CodeColumns), _>(row).await? else { return Ok(None) };
    let signed = signed.decode()?;
    let digest = digest.decode(row::TABLE, &signed.grant.account, "grant_digest")?;
    Ok(Some((signed, digest)))
}

impl Transaction for Command<ChangeInvitation> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let Self { principal, payload, .. } = self;
        if !principal.reaches(payload.organization) {
            return Err(Refusal::NotFound.into());
        }
        let Some(stored) = invitation_row::lock(tx, payload.organization, payload.account).await? else {
            return Err(Refusal::NotFound.into());
        };
        if stored.version != payload.version {
            return Err(Refusal::Contended.into());
        }
        match &payload.change {
            InvitationChange::Role(after) => {
                require_active(tx, [after.digest.key]).await?;
                invitation_row::update(tx, after).await?;
            }
            InvitationChange::Delete => invitation_row::remove(tx, &stored).await?,
        }
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}
