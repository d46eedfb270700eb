//! Invitations.

use super::super::authorize::judge_and_hold;
use super::super::backend::{Connection, RunQuery, Store, for_share};
use super::super::{Decided, Verdict, audit};
use super::invitation_row::{self, InvitationRow, columns};
use super::{directory, enrolment};
use crate::failure::Failure;
use crate::schema::{enrolment_codes, invitations, organizations};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::digest::Digest;
use vault_core::id::OrganizationId;
use vault_core::organization::{OrganizationName, OrganizationState};
use vault_core::port::{
    ChangeAccountOutcome, ChangeInvitation, ConfirmEnrolment, CreateInvitation, CreateInvitationOutcome,
    InvitationChange, InvitationRepository, OpenInvitation, StoreError, WriteDraft,
};
use vault_core::time::Timestamp;

#[async_trait]
impl InvitationRepository for Store {
    async fn create_invitation(&self, command: CreateInvitation) -> Result<CreateInvitationOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(create(connection, command))).await
    }

    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError> {
        self.read((code, now), |connection, (code, now)| Box::pin(find(connection, code, *now))).await
    }

    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(enrolment::write_draft(connection, command))).await
    }

    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(enrolment::confirm(connection, command))).await
    }

    async fn change_invitation(&self, command: ChangeInvitation) -> Result<ChangeAccountOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(change(connection, command))).await
    }
}

async fn create(connection: &mut Connection, command: &CreateInvitation) -> Decided<CreateInvitationOutcome> {
    let CreateInvitation { authority, invitation, digest, address, now, audit: entry } = command;
    let (organization, account) = (invitation.grant.organization, invitation.grant.account);
    if let Err(refusal) = judge_and_hold(connection, authority, *now).await? {
        return Ok(Verdict::Undo(CreateInvitationOutcome::Refused(refusal)));
    }
    if !authority.reaches(organization) || !hold_presence(connection, organization).await? {
        return Ok(Verdict::Undo(CreateInvitationOutcome::NoOrganization));
    }
    if !directory::enter(connection, address, organization, account, *now).await? {
        return Ok(Verdict::Undo(CreateInvitationOutcome::AddressTaken));
    }
    invitation_row::insert(connection, invitation, digest, address).await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(CreateInvitationOutcome::Created))
}

/// Whether there is such an organization, which then stays.
pub(crate) async fn hold_presence(connection: &mut Connection, organization: OrganizationId) -> Result<bool, Failure> {
    let there: Option<String> =
        for_share!(organizations::table.filter(organizations::id.eq(organization.text())).select(organizations::id))
            .get_result(connection)
            .await
            .optional()?;
    Ok(there.is_some())
}

async fn find(connection: &mut Connection, code: &Digest, now: Timestamp) -> Result<Option<OpenInvitation>, Failure> {
    let row: Option<(InvitationRow, Read<OrganizationName>, Read<OrganizationState>)> = enrolment_codes::table
        .inner_join(
            invitations::table.on(invitations::organization_id
                .eq(enrolment_codes::organization_id)
                .and(invitations::account_id.eq(enrolment_codes::account_id))
                .and(invitations::code.eq(enrolment_codes::code))),
        )
        .inner_join(organizations::table.on(organizations::id.eq(invitations::organization_id)))
        .filter(enrolment_codes::code.eq(code.as_bytes().as_slice()))
        .select((columns!(), organizations::name, organizations::state))
        .get_result(connection)
        .await
        .optional()?;
    let Some((row, name, state)) = row else { return Ok(None) };
    let stored = invitation_row::decode(row)?;
    let (organization, account) = (stored.invitation.grant.organization, stored.invitation.grant.account);
    let in_use = state.sound("organizations", &organization, "state")? == OrganizationState::Active;
    if !in_use || !stored.invitation.is_open(now) {
        return Ok(None);
    }
    let seed = enrolment::drafted_seed(connection, organization, account).await?;
    let organization = name.sound("organizations", &organization, "name")?;
    Ok(Some(OpenInvitation { stored, organization, seed }))
}

async fn change(connection: &mut Connection, command: &ChangeInvitation) -> Decided<ChangeAccountOutcome> {
    let ChangeInvitation { authority, organization, account, version, change, now, audit: entry } = command;
    if let Err(refusal) = judge_and_hold(connection, authority, *now).await? {
        return Ok(Verdict::Undo(ChangeAccountOutcome::Refused(refusal)));
    }
    if !authority.reaches(*organization) {
        return Ok(Verdict::Undo(ChangeAccountOutcome::NotFound));
    }
    let Some(held) = invitation_row::hold(connection, *organization, *account).await? else {
        return Ok(Verdict::Undo(ChangeAccountOutcome::NotFound));
    };
    if held.stored.version != *version {
        return Ok(Verdict::Undo(ChangeAccountOutcome::Stale));
    }
    match change {
        InvitationChange::Grant { grant, digest } => invitation_row::update(connection, &held, grant, digest).await?,
        InvitationChange::Delete => invitation_row::remove_with_address(connection, &held).await?,
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(ChangeAccountOutcome::Changed))
}
