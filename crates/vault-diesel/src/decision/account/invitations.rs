//! Invitations.

use super::super::backend::{Connection, RunQuery, Store, for_share};
use super::super::organization::keys::require_active;
use super::super::{Answer, Decided, Decision, Verdict, audit, decide};
use super::accounts::has_room;
use super::invitation_row::{self, InvitationRow, columns};
use super::row::{self, SignedRow, row_of, signed_columns};
use super::{directory, enrolment};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{accounts, enrolment_codes, invitations, organizations};
use crate::stored::{AnyId, CodeColumns, Column, StoredId as _};
use crate::transaction::authorize::authorize_and_lock;
use crate::transaction::hourly;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{ACCOUNT_LIMIT_REACHED, AccountGrant, SignedAccount};
use vault_core::digest::{Digest, RowMac};
use vault_core::hourly::HourlyLimit;
use vault_core::id::OrganizationId;
use vault_core::organization::{OrganizationName, OrganizationState};
use vault_core::port::{
    ChangeInvitation, ConfirmEnrolment, CreateInvitation, InvitationChange, InvitationRepository, OpenInvitation,
    StoreError, WriteDraft,
};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl InvitationRepository for Store {
    async fn create_invitation(&self, command: Command<CreateInvitation>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError> {
        self.read((code, now), |connection, (code, now)| Box::pin(find(connection, code, *now))).await
    }

    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(enrolment::write_draft(connection, command))).await
    }

    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(enrolment::confirm(connection, command))).await??)
    }

    async fn change_invitation(&self, command: Command<ChangeInvitation>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }
}

impl Decision for CreateInvitation {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let Command { principal, now, act, .. } = command;
        let grant = &act.stored.invitation.grant;
        let organization = grant.organization;
        require_active(connection, [act.stored.digest.key]).await?;
        if !principal.reaches(organization) || !hold_presence(connection, organization).await? {
            return Ok(Verdict::Refused(Err(Refusal::NoOrganization)));
        }
        if *principal != Principal::Operator
            && let Some(seconds) = hourly::lock(&connection.tx(), organization, hourly::ADDRESS_CONFLICTS, *now)
                .await?
                .refused_for(HourlyLimit::ADDRESS_CONFLICTS, *now)
        {
            return Ok(Verdict::Refused(Err(Refusal::TooManyConflicts(seconds))));
        }
        if directory::account_of(connection, &act.address).await?.is_some() {
            return address_in_use(connection, command).await;
        }
        let invited = invitation_row::hold_by_address(connection, &act.address, organization).await?;
        if invited.as_ref().is_some_and(|held| held.invitation.is_open(*now)) {
            return Ok(Verdict::Refused(Err(Refusal::AlreadyInvited)));
        }
        if !has_room(connection, organization).await? {
            return Ok(Verdict::Refused(Err(ACCOUNT_LIMIT_REACHED)));
        }
        if !directory::claim(connection, &act.address, organization, grant.account).await? {
            return address_in_use(connection, command).await;
        }
        if let Some(over) = invited {
            invitation_row::remove(connection, &over).await?;
        }
        if !directory::enter_invited(connection, &act.address, organization, grant.account).await? {
            return Ok(Verdict::Undo(Err(Refusal::AlreadyInvited)));
        }
        invitation_row::insert(connection, &act.stored).await?;
        directory::remove(connection, organization, grant.account).await?;
        Ok(Verdict::Done(Ok(())))
    }
}

/// Refuses to invite somebody who has an account.
async fn address_in_use(connection: &mut Connection, command: &Command<CreateInvitation>) -> Decided<Answer> {
    // An operator may know every address.
    if command.principal != Principal::Operator {
        let organization = command.act.stored.invitation.grant.organization;
        let held = hourly::lock(&connection.tx(), organization, hourly::ADDRESS_CONFLICTS, command.now).await?;
        hourly::count(&connection.tx(), organization, hourly::ADDRESS_CONFLICTS, held, command.now).await?;
    }
    audit::record(connection, &command.act.address_in_use).await?;
    Ok(Verdict::RefusedOnRecord(Err(Refusal::AddressInUse)))
}

/// Whether there is such an organization, which then stays.
pub(crate) async fn hold_presence(connection: &mut Connection, organization: OrganizationId) -> Result<bool, Failure> {
    let there: Option<AnyId> =
        for_share!(organizations::table.filter(organizations::id.eq(organization.stored())).select(organizations::id))
            .get_result(connection)
            .await
            .optional()?;
    Ok(there.is_some())
}

async fn find(connection: &mut Connection, code: &Digest, now: Timestamp) -> Result<Option<OpenInvitation>, Failure> {
    let code = code.as_bytes().as_slice();
    // Two statements: what the code leads to may lie on another machine.
    let place: Option<(AnyId, AnyId)> = enrolment_codes::table
        .filter(enrolment_codes::code.eq(code))
        .select((enrolment_codes::organization_id, enrolment_codes::account_id))
        .get_result(connection)
        .await
        .optional()?;
    let Some((organization, account)) = place else { return Ok(None) };
    let row: Option<(InvitationRow, Column<OrganizationName>, Column<OrganizationState>)> = invitations::table
        .inner_join(organizations::table.on(organizations::id.eq(invitations::organization_id)))
        .filter(invitations::organization_id.eq(organization))
        .filter(invitations::account_id.eq(account))
        .filter(invitations::code.eq(code))
        .select((columns!(), organizations::name, organizations::state))
        .get_result(connection)
        .await
        .optional()?;
    let Some((row, name, state)) = row else { return Ok(None) };
    let stored = row.decode()?;
    let (organization, account) = (stored.invitation.grant.organization, stored.invitation.grant.account);
    let in_use = state.decode("organizations", &organization, "state")? == OrganizationState::Active;
    if !in_use || !stored.invitation.is_open(now) {
        return Ok(None);
    }
    let seed = enrolment::drafted_seed(connection, organization, account).await?;
    let re_enrolled = match stored.invitation.re_enrols() {
        true => signed_account(connection, &stored.invitation.grant).await?,
        false => None,
    };
    let organization = name.decode("organizations", &organization, "name")?;
    Ok(Some(OpenInvitation { stored, organization, seed, account: re_enrolled }))
}

/// The account of a grant with the digest that its row carries.
async fn signed_account(
    connection: &mut Connection,
    grant: &AccountGrant,
) -> Result<Option<(SignedAccount, RowMac)>, Failure> {
    let row: Option<(SignedRow, CodeColumns)> = row_of!(grant)
        .select((signed_columns!(), (accounts::grant_digest, accounts::grant_key_id)))
        .get_result(connection)
        .await
        .optional()?;
    let Some((signed, digest)) = row else { return Ok(None) };
    let signed = signed.decode()?;
    let digest = digest.decode(row::TABLE, &signed.grant.account, "grant_digest")?;
    Ok(Some((signed, digest)))
}

impl Decision for ChangeInvitation {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let Command { principal, act, .. } = command;
        if !principal.reaches(act.organization) {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        }
        let Some(held) = invitation_row::hold(connection, act.organization, act.account).await? else {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        };
        if held.version != act.version {
            return Ok(Verdict::Refused(Err(Refusal::Contended)));
        }
        match &act.change {
            InvitationChange::Role(after) => {
                require_active(connection, [after.digest.key]).await?;
                invitation_row::update(connection, after).await?;
            }
            InvitationChange::Delete => invitation_row::remove(connection, &held).await?,
        }
        Ok(Verdict::Done(Ok(())))
    }
}
