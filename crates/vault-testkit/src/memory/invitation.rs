//! Invitations.

use super::row::{AccountRow, InvitationRow, NewAccount};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::invitation::StoredInvitation;
use vault_core::port::{
    ChangeAccountOutcome, ChangeInvitation, ConfirmEnrolment, CreateInvitation, CreateInvitationOutcome,
    InvitationChange, InvitationRepository, OpenInvitation, StoreError, WriteDraft,
};
use vault_core::time::Timestamp;

#[async_trait]
impl InvitationRepository for MemoryStore {
    async fn create_invitation(&self, command: CreateInvitation) -> Result<CreateInvitationOutcome, StoreError> {
        self.decide(|state| create(state, command))
    }

    async fn find_invitation(&self, code: Digest, now: Timestamp) -> Result<Option<OpenInvitation>, StoreError> {
        self.decide(|state| {
            let row = state.invitations.values().find(|row| row.stored.invitation.code == code)?;
            let open = open_invitation(state, row.stored.invitation.grant.account, now)?;
            let organization = state.organizations.get(&open.stored.invitation.grant.organization)?;
            Some(OpenInvitation {
                stored: open.stored.clone(),
                organization: organization.name.clone(),
                seed: open.draft.as_ref().map(|draft| draft.seed.clone()),
            })
        })
    }

    async fn write_draft(&self, command: WriteDraft) -> Result<bool, StoreError> {
        self.decide(|state| {
            let WriteDraft { organization, account, code, draft, now, audit } = command;
            if open_invitation(state, account, now).is_none() {
                return false;
            }
            let Some(row) = invitation_in(state, organization, account) else { return false };
            if row.stored.invitation.code != code {
                return false;
            }
            row.draft = Some(draft);
            state.audit.push(audit);
            true
        })
    }

    async fn confirm_enrolment(&self, command: ConfirmEnrolment) -> Result<bool, StoreError> {
        self.decide(|state| confirm(state, command))
    }

    async fn change_invitation(&self, command: ChangeInvitation) -> Result<ChangeAccountOutcome, StoreError> {
        self.decide(|state| {
            let ChangeInvitation { authority, organization, account, version, change, now, audit } = command;
            if let Err(refusal) = state.judge(&authority, now) {
                return ChangeAccountOutcome::Refused(refusal);
            }
            let reached = authority.reaches(organization);
            let Some(row) = invitation_in(state, organization, account).filter(|_| reached) else {
                return ChangeAccountOutcome::NotFound;
            };
            if row.stored.version != version {
                return ChangeAccountOutcome::Stale;
            }
            match change {
                InvitationChange::Grant { grant, digest } => {
                    row.stored.invitation.grant = grant;
                    row.stored.digest = digest;
                    row.stored.version += 1;
                }
                InvitationChange::Delete => {
                    state.invitations.remove(&account);
                }
            }
            state.audit.push(audit);
            ChangeAccountOutcome::Changed
        })
    }
}

fn create(state: &mut State, command: CreateInvitation) -> CreateInvitationOutcome {
    let CreateInvitation { authority, invitation, digest, address, now, audit } = command;
    if let Err(refusal) = state.judge(&authority, now) {
        return CreateInvitationOutcome::Refused(refusal);
    }
    let organization = invitation.grant.organization;
    if !authority.reaches(organization) || !state.organizations.contains_key(&organization) {
        return CreateInvitationOutcome::NoOrganization;
    }
    if !state.free_address(address, now) {
        return CreateInvitationOutcome::AddressTaken;
    }
    let account = invitation.grant.account;
    let stored = StoredInvitation { invitation, digest, version: 1 };
    state.invitations.insert(account, InvitationRow { stored, address, draft: None });
    state.audit.push(audit);
    CreateInvitationOutcome::Created
}

fn confirm(state: &mut State, command: ConfirmEnrolment) -> bool {
    let ConfirmEnrolment { grant, grant_digest, code, version, seed, step, now, audit } = command;
    let account = grant.account;
    let as_read = open_invitation(state, account, now).is_some_and(|row| {
        row.stored.invitation.grant.organization == grant.organization
            && row.stored.invitation.code == code
            && row.stored.version == version
            && row.draft.as_ref().is_some_and(|draft| draft.seed.id == seed)
    });
    if !as_read {
        return false;
    }
    let Some(InvitationRow { address, draft: Some(draft), .. }) = state.invitations.remove(&account) else {
        return false;
    };
    let mut row = AccountRow::new(NewAccount {
        grant,
        grant_digest,
        address,
        password: draft.password,
        seed: draft.seed,
        recovery_codes: draft.recovery_codes,
        created_at: now,
    });
    row.last_step = step;
    state.accounts.insert(account, row);
    state.audit.push(audit);
    true
}

/// The invitation, if it can be taken up now.
fn open_invitation(state: &State, account: AccountId, now: Timestamp) -> Option<&InvitationRow> {
    state.invitations.get(&account).filter(|row| {
        let invitation = &row.stored.invitation;
        invitation.is_open(now) && state.organization_is_active(invitation.grant.organization)
    })
}

fn invitation_in(state: &mut State, organization: OrganizationId, account: AccountId) -> Option<&mut InvitationRow> {
    state.invitations.get_mut(&account).filter(|row| row.stored.invitation.grant.organization == organization)
}
