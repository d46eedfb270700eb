//! Accounts.

use super::row::{AccountRow, NewAccount};
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::{Account, AccountGrant, takes_last_admin};
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::invitation::StoredInvitation;
use vault_core::lockout::AttemptClass;
use vault_core::port::{
    AccountChange, AccountKey, AccountRepository, AccountScope, ChangeAccount, ChangeAccountOutcome, CreateAccount,
    CreateAccountOutcome, FindAccount, FoundAccount, ListAccounts, StoreError, StoredPasscode,
};
use vault_core::principal::{Denial, Principal};
use vault_core::time::Timestamp;

#[async_trait]
impl AccountRepository for MemoryStore {
    async fn create_account(&self, command: CreateAccount) -> Result<CreateAccountOutcome, StoreError> {
        self.decide(|state| {
            if !state.organizations.contains_key(&command.grant.organization) {
                return CreateAccountOutcome::NoOrganization;
            }
            if !state.free_address(command.address, command.created_at) {
                return CreateAccountOutcome::AddressTaken;
            }
            let row = AccountRow::new(NewAccount {
                grant: command.grant,
                grant_digest: command.grant_digest,
                address: command.address,
                password: command.password,
                seed: command.seed,
                recovery_codes: command.recovery_codes,
                created_at: command.created_at,
            });
            state.accounts.insert(row.grant.account, row);
            state.audit.push(command.audit);
            CreateAccountOutcome::Created
        })
    }

    async fn find_account(&self, query: FindAccount) -> Result<Result<Option<FoundAccount>, Denial>, StoreError> {
        self.decide(|state| {
            state.judge(&query.authority, query.now)?;
            let wanted = |grant: &AccountGrant, address: Digest| {
                query.authority.reaches(grant.organization)
                    && match query.key {
                        AccountKey::Address(wanted) => address == wanted,
                        AccountKey::Id(organization, id) => grant.organization == organization && grant.account == id,
                    }
            };
            let account = state.accounts.values().find(|row| wanted(&row.grant, row.address));
            if let Some(row) = account {
                return Ok(Some(FoundAccount::Account(row.account())));
            }
            let mut invitations = state.invitations.values();
            let invitation = invitations.find(|row| wanted(&row.stored.invitation.grant, row.address));
            Ok(invitation.map(|row| FoundAccount::Invitation(row.stored.clone())))
        })
    }

    async fn list_accounts(&self, query: ListAccounts) -> Result<Result<Vec<Account>, Denial>, StoreError> {
        self.decide(|state| {
            let organization = match &query.scope {
                AccountScope::Everywhere => None,
                AccountScope::Organization(organization) => Some(*organization),
                AccountScope::Session(principal) => {
                    state.judge_session(principal, query.now)?;
                    Some(principal.organization)
                }
            };
            let invitations = state.invitations.values().map(|row| &row.stored);
            let open = invitations.filter(|stored| stored.invitation.is_open(query.now));
            let everybody = state.accounts.values().map(AccountRow::account).chain(open.map(StoredInvitation::listed));
            let wanted = |account: &Account| organization.is_none_or(|id| account.grant.organization == id);
            let mut accounts: Vec<_> = everybody.filter(wanted).collect();
            accounts
                .sort_by(|a, b| (a.grant.organization, &a.grant.email).cmp(&(b.grant.organization, &b.grant.email)));
            Ok(accounts)
        })
    }

    async fn change_account(&self, command: ChangeAccount) -> Result<ChangeAccountOutcome, StoreError> {
        self.decide(|state| {
            let ChangeAccount { authority, organization, account, version, change, now, audit } = command;
            if let Err(refusal) = state.judge(&authority, now) {
                return ChangeAccountOutcome::Refused(refusal);
            }
            let others = state.other_active_admins(organization, account);
            let reached = authority.reaches(organization);
            let Some(row) = state.account_in(organization, account).filter(|_| reached) else {
                return ChangeAccountOutcome::NotFound;
            };
            if row.version != version {
                return ChangeAccountOutcome::Stale;
            }
            let bound = matches!(authority, Principal::Session(_));
            if bound && takes_last_admin(&row.grant, change.grant_after(&row.grant), others) {
                return ChangeAccountOutcome::LastAdmin;
            }
            apply(state, account, change, now);
            state.audit.push(audit);
            ChangeAccountOutcome::Changed
        })
    }

    async fn read_passcode(
        &self,
        organization: OrganizationId,
        account: AccountId,
        audit: SealedAuditRecord,
    ) -> Result<Option<StoredPasscode>, StoreError> {
        self.decide(|state| {
            let row = state.account_in(organization, account)?;
            let stored = StoredPasscode { seed: row.seed.clone(), last_step: row.last_step };
            state.audit.push(audit);
            Some(stored)
        })
    }
}

impl State {
    /// How many other accounts of the organization are active admins.
    fn other_active_admins(&self, organization: OrganizationId, account: AccountId) -> u64 {
        let grants = self.accounts.values().map(|row| &row.grant);
        let others = grants.filter(|grant| grant.organization == organization && grant.account != account);
        others.filter(|grant| grant.is_active_admin()).map(|_| 1).sum()
    }
}

fn apply(state: &mut State, account: AccountId, change: AccountChange, now: Timestamp) {
    let unlocking = matches!(change, AccountChange::Unlock);
    if !unlocking {
        state.end_sessions_of(account);
    }
    let Some(row) = state.accounts.get_mut(&account) else { return };
    row.version += 1;
    row.pending.take_if(|_| !unlocking);
    if let Some(notice) = change.notice() {
        row.notify(notice, now);
    }
    match change {
        AccountChange::Grant { grant, digest } => {
            row.grant = grant;
            row.grant_digest = digest;
        }
        AccountChange::Password(password) => {
            row.password = password;
            row.password_version += 1;
        }
        AccountChange::Passcode { seed, recovery_codes } => {
            row.seed = seed;
            row.passcode_enrolled_at = now;
            row.last_step = AccountRow::NO_STEP;
            row.wrong_passcodes = 0;
            row.recovery_codes = recovery_codes;
        }
        AccountChange::Unlock => {
            row.shared = AttemptClass::default();
            for network in &mut row.networks {
                network.class = AttemptClass::default();
            }
        }
        AccountChange::Delete => {
            state.accounts.remove(&account);
            state.idempotency.retain(|(_, owner, _), _| *owner != account);
        }
    }
}
