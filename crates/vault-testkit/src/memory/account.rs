//! Accounts.

use super::row::AccountRow;
use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::Account;
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::AttemptClass;
use vault_core::port::{
    AccountChange, AccountRepository, ChangeAccount, ChangeAccountOutcome, CreateAccount, CreateAccountOutcome,
    StoreError, StoredPasscode,
};

#[async_trait]
impl AccountRepository for MemoryStore {
    async fn create_account(&self, command: CreateAccount) -> Result<CreateAccountOutcome, StoreError> {
        self.decide(|state| {
            if !state.organizations.contains_key(&command.grant.organization) {
                return CreateAccountOutcome::NoOrganization;
            }
            if state.account_by_address(command.address).is_some() {
                return CreateAccountOutcome::AddressTaken;
            }
            let row = AccountRow {
                grant: command.grant,
                grant_digest: command.grant_digest,
                address: command.address,
                password: command.password,
                password_version: 1,
                seed: command.seed,
                last_step: AccountRow::NO_STEP,
                wrong_passcodes: 0,
                recovery_codes: command.recovery_codes,
                shared: AttemptClass::default(),
                networks: Vec::new(),
                version: 1,
                created_at: command.created_at,
                last_login_at: None,
            };
            state.accounts.insert(row.grant.account, row);
            state.audit.push(command.audit);
            CreateAccountOutcome::Created
        })
    }

    async fn find_account(&self, address: Digest) -> Result<Option<Account>, StoreError> {
        self.decide(|state| state.accounts.values().find(|row| row.address == address).map(AccountRow::account))
    }

    async fn list_accounts(&self, organization: Option<OrganizationId>) -> Result<Vec<Account>, StoreError> {
        self.decide(|state| {
            let wanted = |row: &&AccountRow| organization.is_none_or(|id| row.grant.organization == id);
            let mut accounts: Vec<_> = state.accounts.values().filter(wanted).map(AccountRow::account).collect();
            accounts
                .sort_by(|a, b| (a.grant.organization, &a.grant.email).cmp(&(b.grant.organization, &b.grant.email)));
            accounts
        })
    }

    async fn change_account(&self, command: ChangeAccount) -> Result<ChangeAccountOutcome, StoreError> {
        self.decide(|state| {
            let ChangeAccount { organization, account, version, change, audit } = command;
            let Some(row) = state.account_in(organization, account) else { return ChangeAccountOutcome::NotFound };
            if row.version != version {
                return ChangeAccountOutcome::Stale;
            }
            apply(state, account, change);
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

fn apply(state: &mut State, account: AccountId, change: AccountChange) {
    if !matches!(change, AccountChange::Unlock) {
        state.end_sessions_of(account);
    }
    let Some(row) = state.accounts.get_mut(&account) else { return };
    row.version += 1;
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
