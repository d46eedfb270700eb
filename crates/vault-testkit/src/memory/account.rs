//! Accounts.

use super::row::{AccountRow, InvitationRow, NewAccount};
use super::{Answer, Decided, MemoryStore, State, leads};
use async_trait::async_trait;
use std::cmp::Reverse;
use vault_core::account::{
    ACCOUNT_LIMIT_REACHED, Account, AccountRights, ListedAccount, SignedAccount, takes_last_admin,
};
use vault_core::digest::Digest;
use vault_core::entity::Kind;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::notice::NoticeCode;
use vault_core::port::{
    AccountChange, AccountKey, AccountRepository, ChangeAccount, CreateAccount, Find, FoundAccount, List, StoreError,
};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::role::Action;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl AccountRepository for MemoryStore {
    async fn create_account(&self, command: Command<CreateAccount>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, create)??)
    }

    async fn find_account(&self, query: Find<AccountKey, Scope>) -> Result<Option<FoundAccount>, StoreError> {
        self.decide(|state| {
            state.authorize(&query.principal, query.now)?;
            let only = confine(&query.principal, query.of)?;
            Ok(find(state, &query, only))
        })?
    }

    async fn list_accounts(&self, query: List<(OrganizationId, AccountId)>) -> Result<Vec<ListedAccount>, StoreError> {
        self.decide(|state| {
            state.authorize(&query.principal, query.now)?;
            let only = confine(&query.principal, query.of)?;
            if only.is_some_and(|organization| !query.principal.reaches(organization)) {
                return Err(StoreError::Denied(Denial::InsufficientRole));
            }
            Ok(list(state, &query, only))
        })?
    }

    async fn change_account(&self, command: Command<ChangeAccount>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, change)??)
    }
}

/// Returns the organization whose rows a query may read, or `Ok(None)` for all organizations.
fn confine(principal: &Principal, scope: Scope) -> Result<Option<OrganizationId>, StoreError> {
    match scope {
        Scope::One(organization) => Ok(Some(organization)),
        Scope::All if *principal == Principal::Operator => Ok(None),
        Scope::All => Err(StoreError::Denied(Denial::InsufficientRole)),
    }
}

fn create(state: &mut State, principal: &Principal, now: Timestamp, payload: CreateAccount) -> Decided<Answer> {
    let organization = payload.signed.grant.organization;
    let blobs = [&payload.password.blob, &payload.seed.blob];
    if let Err(refusal) = state.require_active(blobs.into_iter().filter_map(Blob::key).chain([payload.digest.key])) {
        return Decided::Refused(Err(refusal));
    }
    if !principal.reaches(organization) || !state.organization_keys.contains_key(&organization) {
        return Decided::Refused(Err(Refusal::NoOrganization));
    }
    let invited = state.invitation_by_address(&payload.address, organization);
    let invited = invited.map(|row| (row.stored.invitation.grant.account, row.stored.invitation.is_open(now)));
    if invited.is_some_and(|(_, open)| open) || state.account_by_address(&payload.address).is_some() {
        return Decided::Refused(Err(Refusal::AddressTaken));
    }
    if !state.has_room(organization) {
        return Decided::Refused(Err(ACCOUNT_LIMIT_REACHED));
    }
    if let Some((over, _)) = invited {
        state.invitations.remove(&over);
    }
    let row = AccountRow::new(NewAccount {
        signed: payload.signed,
        digest: payload.digest,
        address: payload.address.entered().to_vec(),
        password: payload.password,
        seed: payload.seed,
        recovery_codes: payload.recovery_codes,
        created_at: now,
    });
    state.accounts.insert(row.signed.grant.account, row);
    Decided::Done(Ok(()))
}

fn find(state: &State, query: &Find<AccountKey, Scope>, only: Option<OrganizationId>) -> Option<FoundAccount> {
    let sees = |organization: OrganizationId| {
        query.principal.reaches(organization) && only.is_none_or(|only| only == organization)
    };
    let is_wanted = |organization: OrganizationId, account: AccountId, address: &[Digest]| {
        sees(organization)
            && match &query.key {
                AccountKey::Address(wanted) => leads(wanted, address),
                AccountKey::Id(of, wanted) => organization == *of && account == *wanted,
            }
    };
    let mut accounts = state.accounts.values();
    let account = accounts
        .find(|row| is_wanted(row.signed.grant.organization, row.signed.grant.account, &row.address))
        .map(|row| state.shown(row, query.now));
    if let Some(account) = account {
        return Some(FoundAccount::Account(Box::new(account)));
    }
    let invited: Vec<_> = state
        .invitations
        .values()
        .filter(|row| {
            let grant = &row.stored.invitation.grant;
            is_wanted(grant.organization, grant.account, &row.address)
        })
        .collect();
    match invited[..] {
        [] => None,
        [row] => Some(FoundAccount::Invitation(Box::new(row.stored.clone()))),
        _ => Some(FoundAccount::Invitations(invited.len())),
    }
}

fn list(state: &State, query: &List<(OrganizationId, AccountId)>, only: Option<OrganizationId>) -> Vec<ListedAccount> {
    let accounts = state.accounts.values().map(|row| state.shown(row, query.now).listed());
    let own = state.invitations.values().filter(|row| !row.stored.invitation.re_enrols());
    let open = own.filter(|row| row.stored.invitation.is_open(query.now));
    let order = |organization, account| (organization, Reverse(account));
    let comes = |listed: &ListedAccount| {
        let place = order(listed.grant.organization, listed.grant.account);
        only.is_none_or(|only| listed.grant.organization == only)
            && query.after.is_none_or(|(organization, account)| place > order(organization, account))
    };
    let mut listed: Vec<_> = accounts.chain(open.map(|row| row.stored.listed())).filter(comes).collect();
    listed.sort_by_key(|listed| order(listed.grant.organization, listed.grant.account));
    listed.truncate(query.limit);
    listed
}

fn change(state: &mut State, principal: &Principal, now: Timestamp, payload: ChangeAccount) -> Decided<Answer> {
    let (organization, account) = (payload.after.grant.organization, payload.after.grant.account);
    let others = state.other_active_admins(organization, account);
    let sealed = match &payload.change {
        AccountChange::ReEnrol { invitation, .. } => Some(invitation.digest.key),
        AccountChange::Grant | AccountChange::Unlock | AccountChange::Delete => None,
    };
    let sealed_under_active = state.require_active(sealed.into_iter().chain([payload.digest.key]));
    let reached = principal.reaches(organization);
    let Some(row) = state.account_in(organization, account).filter(|_| reached) else {
        return Decided::Refused(Err(Refusal::NotFound));
    };
    if row.signed.version != payload.version {
        return Decided::Refused(Err(Refusal::Contended));
    }
    if let Err(refusal) = sealed_under_active {
        return Decided::Refused(Err(refusal));
    }
    let bound = *principal != Principal::Operator;
    if bound && takes_last_admin(&row.signed.grant, payload.grant_after(), others) {
        return Decided::Refused(Err(Refusal::LastAdmin));
    }
    apply(state, account, payload, now);
    Decided::Done(Ok(()))
}

impl State {
    /// Returns the number of other active admins of the organization.
    fn other_active_admins(&self, organization: OrganizationId, account: AccountId) -> u64 {
        let grants = self.accounts.values().map(|row| &row.signed.grant);
        let others = grants.filter(|grant| grant.organization == organization && grant.account != account);
        others.filter(|grant| grant.is_active_admin()).map(|_| 1).sum()
    }

    /// Returns the account with its pending enrolment code.
    fn shown(&self, row: &AccountRow, now: Timestamp) -> Account {
        let invitation = self.invitations.get(&row.signed.grant.account).map(|row| &row.stored.invitation);
        let open = invitation.filter(|invitation| invitation.is_open(now));
        Account { enrolment_until: open.map(|invitation| invitation.expires_at), ..row.account(now) }
    }

    fn notify_other_admins(&mut self, changed: &AccountRights, notice: NoticeCode, now: Timestamp) {
        for row in self.accounts.values_mut() {
            let grant = &row.signed.grant;
            let is_other = grant.organization == changed.organization && grant.account != changed.account;
            if is_other && grant.role.permits(Action::ManageAccounts) {
                row.notify(notice, now);
            }
        }
    }
}

fn apply(state: &mut State, account: AccountId, payload: ChangeAccount, now: Timestamp) {
    let unlocking = matches!(payload.change, AccountChange::Unlock);
    if !unlocking {
        state.end_sessions_of(account);
    }
    if let Some(notice) = payload.change.admins_notice(account) {
        state.notify_other_admins(&payload.after.grant, notice, now);
    }
    let Some(row) = state.accounts.get_mut(&account) else { return };
    row.pending.take_if(|_| !unlocking);
    row.signed = payload.after;
    row.digest = payload.digest;
    if let Some(notice) = payload.change.notice() {
        row.notify(notice, now);
    }
    if payload.change.unlocks() {
        row.unlock();
    }
    match payload.change {
        AccountChange::Grant | AccountChange::Unlock => {}
        AccountChange::ReEnrol { invitation } => {
            let blank = |secret: &Blob| Blob::from_bytes(vec![0; secret.as_bytes().len()]);
            row.password = SealedPassword { id: SignedAccount::NO_PASSWORD, blob: blank(&row.password.blob) };
            row.seed = SealedSeed { id: SignedAccount::NO_SEED, blob: blank(&row.seed.blob) };
            row.last_step = AccountRow::NO_STEP;
            row.wrong_passcodes = Default::default();
            row.recovery_codes = Vec::new();
            state.invitations.insert(account, InvitationRow { stored: *invitation, address: Vec::new(), draft: None });
        }
        AccountChange::Delete => {
            state.accounts.remove(&account);
            state.invitations.remove(&account);
            state.idempotency.retain(|(_, owner, _), _| *owner != account);
            state.entities.retain(|(_, kind, id), _| (*kind, id) != (Kind::SetAside.as_str(), account.as_uuid()));
        }
    }
}
