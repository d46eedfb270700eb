//! Invitations.

use super::row::{AccountRow, InvitationRow, NewAccount};
use super::{Answer, Decided, MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::ACCOUNT_LIMIT_REACHED;
use vault_core::digest::Digest;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::{
    ChangeInvitation, ConfirmEnrolment, CreateInvitation, InvitationChange, InvitationRepository, OpenInvitation,
    StoreError, WriteDraft,
};
use vault_core::principal::Principal;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl InvitationRepository for MemoryStore {
    async fn create_invitation(&self, command: Command<CreateInvitation>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, create)??)
    }

    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError> {
        self.decide(|state| {
            let row = state.invitations.values().find(|row| row.stored.invitation.code == code)?;
            let open = open_invitation(state, row.stored.invitation.grant.account, now)?;
            let grant = &open.stored.invitation.grant;
            let account = state.accounts.get(&grant.account).filter(|_| open.stored.invitation.re_enrols());
            let inviter = open.stored.invitation.invited_by.and_then(|inviter| state.accounts.get(&inviter));
            let inviter = inviter.filter(|row| row.signed.grant.organization == grant.organization);
            Some(OpenInvitation {
                stored: open.stored.clone(),
                invited_by: inviter.map(|row| (row.signed.clone(), row.digest)),
                draft: open.draft.clone(),
                account: account.map(|row| (row.signed.clone(), row.digest)),
            })
        })
    }

    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError> {
        self.decide(|state| {
            let WriteDraft { organization, account, code, draft, now, audit } = command;
            let blobs = [&draft.password.blob, &draft.seed.blob];
            state.require_active(blobs.into_iter().filter_map(Blob::key).chain([draft.digest.key]))?;
            if open_invitation(state, account, now).is_none() {
                return Ok(false);
            }
            let Some(row) = invitation_in(state, organization, account) else { return Ok(false) };
            if row.stored.invitation.code != code {
                return Ok(false);
            }
            row.draft = Some(draft);
            state.audit.push(audit);
            Ok(true)
        })?
    }

    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<(), StoreError> {
        Ok(self.decide(|state| confirm(state, command))??)
    }

    async fn change_invitation(&self, command: Command<ChangeInvitation>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, principal, _, payload| {
            let ChangeInvitation { organization, account, version, change } = payload;
            let signed = match &change {
                InvitationChange::Role(after) => Some(after.digest.key),
                InvitationChange::Delete => None,
            };
            if let Err(refusal) = state.require_active(signed) {
                return Decided::Refused(Err(refusal));
            }
            let reached = principal.reaches(organization);
            let Some(row) = invitation_in(state, organization, account).filter(|_| reached) else {
                return Decided::Refused(Err(Refusal::NotFound));
            };
            if row.stored.version != version {
                return Decided::Refused(Err(Refusal::Contended));
            }
            match change {
                InvitationChange::Role(after) => row.stored = after,
                InvitationChange::Delete => {
                    state.invitations.remove(&account);
                }
            }
            Decided::Done(Ok(()))
        })??)
    }
}

/// The name of the counter of rejected addresses.
const HOURLY: &str = "address conflicts";

fn create(state: &mut State, principal: &Principal, now: Timestamp, payload: CreateInvitation) -> Decided<Answer> {
    let CreateInvitation { stored, address, address_in_use } = payload;
    if let Err(refusal) = state.require_active([stored.digest.key]) {
        return Decided::Refused(Err(refusal));
    }
    let (organization, account) = (stored.invitation.grant.organization, stored.invitation.grant.account);
    if !principal.reaches(organization) || !state.organization_keys.contains_key(&organization) {
        return Decided::Refused(Err(Refusal::NoOrganization));
    }
    let is_counted = *principal != Principal::Operator;
    if is_counted && let Some(seconds) = state.refused_for(organization, HOURLY, HourlyLimit::ADDRESS_CONFLICTS, now) {
        return Decided::Refused(Err(Refusal::TooManyConflicts(seconds)));
    }
    if state.account_by_address(&address).is_some() {
        if is_counted {
            state.count(organization, HOURLY, now);
        }
        state.audit.push(address_in_use);
        return Decided::Refused(Err(Refusal::AddressInUse));
    }
    let invited = state.invitation_by_address(&address, organization);
    let invited = invited.map(|row| (row.stored.invitation.grant.account, row.stored.invitation.is_open(now)));
    if invited.is_some_and(|(_, open)| open) {
        return Decided::Refused(Err(Refusal::AlreadyInvited));
    }
    if !state.has_room(organization) {
        return Decided::Refused(Err(ACCOUNT_LIMIT_REACHED));
    }
    if let Some((over, _)) = invited {
        state.invitations.remove(&over);
    }
    state.invitations.insert(account, InvitationRow { stored, address: address.entered().to_vec(), draft: None });
    Decided::Done(Ok(()))
}

fn confirm(state: &mut State, command: ConfirmEnrolment) -> Answer {
    state.require_active([command.digest.key])?;
    let ConfirmEnrolment { signed, account_version, digest, address, code, version, draft: read, step, now, audit } =
        command;
    let account = signed.grant.account;
    let as_read = open_invitation(state, account, now).is_some_and(|row| {
        row.stored.invitation.grant.organization == signed.grant.organization
            && row.stored.invitation.code == code
            && row.stored.version == version
            && row.stored.invitation.re_enrols() == account_version.is_some()
            && row.draft.as_ref().is_some_and(|draft| draft.digest == read)
    });
    let current = state.accounts.get(&account).map(|row| row.signed.version);
    if !as_read || account_version.is_some_and(|version| current != Some(version)) {
        return Err(Refusal::Contended);
    }
    if account_version.is_some() {
        let draft = state.invitations.remove(&account).and_then(|row| row.draft);
        if let (Some(row), Some(draft)) = (state.accounts.get_mut(&account), draft) {
            row.signed = signed;
            row.digest = digest;
            row.password = draft.password;
            row.seed = draft.seed;
            row.recovery_codes = draft.recovery_codes;
            row.passcode_enrolled_at = now;
            row.last_step = step;
            row.wrong_passcodes = Default::default();
        }
        state.audit.push(audit);
        return Ok(());
    }
    if state.account_by_address(&address).is_some() {
        return Err(Refusal::AddressInUse);
    }
    let Some(InvitationRow { draft: Some(draft), .. }) = state.invitations.remove(&account) else {
        return Err(Refusal::Contended);
    };
    let mut row = AccountRow::new(NewAccount {
        signed,
        digest,
        address: address.entered().to_vec(),
        password: draft.password,
        seed: draft.seed,
        recovery_codes: draft.recovery_codes,
        created_at: now,
    });
    row.last_step = step;
    state.accounts.insert(account, row);
    state.audit.push(audit);
    Ok(())
}

/// Returns the invitation if it can be accepted now.
fn open_invitation(state: &State, account: AccountId, now: Timestamp) -> Option<&InvitationRow> {
    state.invitations.get(&account).filter(|row| {
        let invitation = &row.stored.invitation;
        invitation.is_open(now) && state.organization_is_active(invitation.grant.organization)
    })
}

fn invitation_in(state: &mut State, organization: OrganizationId, account: AccountId) -> Option<&mut InvitationRow> {
    state.invitations.get_mut(&account).filter(|row| row.stored.invitation.grant.organization == organization)
}
