//! The rows of accounts.

use super::State;
use super::row::{AccountRow, TriedSeed};
use super::rows::{MemoryRows, done};
use std::cmp::Reverse;
use vault_core::account::{Account, AccountRights, NewAccount, OwnAccount, SignedAccount};
use vault_core::digest::{Digest, RowMac};
use vault_core::email::EmailAddress;
use vault_core::entity::Kind;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::WrongPasscodes;
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PendingSeed, TimeStep};
use vault_core::port::{AccountPlace, AccountRows, Reply};
use vault_core::role::Action;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

/// Returns a page of rows, ordered by organization and within it newest first.
pub(super) fn page<T>(
    rows: impl Iterator<Item = T>,
    grant: impl Fn(&T) -> &AccountRights,
    of: Option<OrganizationId>,
    after: Option<AccountPlace>,
    limit: usize,
) -> Vec<T> {
    let order = |(organization, account): AccountPlace| (organization, Reverse(account));
    let place = |row: &T| order((grant(row).organization, grant(row).account));
    let comes = |row: &T| {
        of.is_none_or(|only| grant(row).organization == only) && after.is_none_or(|after| place(row) > order(after))
    };
    let mut rows: Vec<T> = rows.filter(comes).collect();
    rows.sort_by_key(place);
    rows.truncate(limit);
    rows
}

impl State {
    /// Returns the account with its pending enrolment code.
    fn shown(&self, row: &AccountRow, now: Timestamp) -> Account {
        let grant = &row.signed.grant;
        let invitation = (grant.organization, Kind::Invitation.as_str(), *grant.account.as_uuid());
        let until = self.entities.get(&invitation).and_then(|invitation| invitation.due_at);
        Account { enrolment_until: until.filter(|until| now < *until), ..row.account(now) }
    }
}

impl AccountRows for MemoryRows<'_> {
    fn account_of(&self, address: &EmailAddress) -> Reply<'_, Option<AccountPlace>> {
        let state = self.state();
        let row = state.account_by_address(address).and_then(|account| state.accounts.get(&account));
        done(row.map(|row| (row.signed.grant.organization, row.signed.grant.account)))
    }

    fn account(&self, place: AccountPlace) -> Reply<'_, Option<(SignedAccount, RowMac)>> {
        self.with_account(place, |row| (row.signed.clone(), row.digest))
    }

    fn own_account(&self, place: AccountPlace) -> Reply<'_, Option<OwnAccount>> {
        self.with_account(place, |row| OwnAccount {
            signed: row.signed.clone(),
            passcode_enrolled_at: row.passcode_enrolled_at,
            recovery_codes_left: u32::try_from(row.recovery_codes.len()).unwrap_or(u32::MAX),
            notices: row.notices.clone(),
        })
    }

    fn sign_account(&self, signed: &SignedAccount, digest: &RowMac) -> Reply<'_, ()> {
        let place = (signed.grant.organization, signed.grant.account);
        self.change_account(place, |row| (row.signed, row.digest) = (signed.clone(), *digest))
    }

    fn found_account(&self, (organization, account): AccountPlace, now: Timestamp) -> Reply<'_, Option<Account>> {
        let state = self.state();
        let row = state.accounts.get(&account).filter(|row| row.signed.grant.organization == organization);
        done(row.map(|row| state.shown(row, now)))
    }

    fn listed_accounts(
        &self,
        of: Option<OrganizationId>,
        after: Option<AccountPlace>,
        limit: usize,
        now: Timestamp,
    ) -> Reply<'_, Vec<Account>> {
        let state = self.state();
        let accounts = state.accounts.values().map(|row| state.shown(row, now));
        done(page(accounts, |account| &account.signed.grant, of, after, limit))
    }

    fn count_accounts(&self, organization: OrganizationId) -> Reply<'_, i64> {
        let state = self.state();
        let accounts = state.accounts.values().filter(|row| row.signed.grant.organization == organization).count();
        let invited = state.entities_of(organization, Kind::Invitation);
        let invited = invited.filter(|row| !state.accounts.contains_key(&AccountId::from_uuid(row.key.id))).count();
        done(i64::try_from(accounts + invited).unwrap_or(i64::MAX))
    }

    fn admins(&self, organization: OrganizationId) -> Reply<'_, Vec<AccountRights>> {
        let state = self.state();
        let grants = state.accounts.values().map(|row| &row.signed.grant);
        let own = grants.filter(|grant| grant.organization == organization);
        done(own.filter(|grant| grant.role.permits(Action::ManageAccounts)).cloned().collect())
    }

    fn enter_address(&self, address: &EmailAddress, place: AccountPlace) -> Reply<'_, bool> {
        let mut state = self.state();
        let is_free = state.account_by_address(address).is_none();
        if is_free {
            state.addresses.insert(address.clone(), place.1);
        }
        done(is_free)
    }

    fn insert_account(&self, new: &NewAccount) -> Reply<'_, ()> {
        self.state().accounts.insert(new.signed.grant.account, AccountRow::new(new.clone()));
        done(())
    }

    fn remove_account(&self, (_, account): AccountPlace) -> Reply<'_, ()> {
        let mut state = self.state();
        state.addresses.retain(|_, owner| *owner != account);
        state.accounts.remove(&account);
        state.idempotency.retain(|(_, owner, _), _| *owner != account);
        state.entities.retain(|(_, kind, id), _| (*kind, id) != (Kind::SetAside.as_str(), account.as_uuid()));
        done(())
    }

    fn erase_secrets(&self, place: AccountPlace, now: Timestamp) -> Reply<'_, ()> {
        let blank = |secret: &Blob| Blob::from_bytes(vec![0; secret.as_bytes().len()]);
        self.change_account(place, |row| {
            row.password = SealedPassword { id: SignedAccount::NO_PASSWORD, blob: blank(&row.password.blob) };
            row.seed = SealedSeed { id: SignedAccount::NO_SEED, blob: blank(&row.seed.blob) };
            (row.last_step, row.wrong_passcodes) = (TimeStep::NONE, WrongPasscodes::default());
            (row.recovery_codes, row.passcode_enrolled_at) = (Vec::new(), now);
        })
    }

    fn set_password(&self, place: AccountPlace, password: &Blob) -> Reply<'_, ()> {
        self.change_account(place, |row| row.password.blob = password.clone())
    }

    fn set_seed(&self, place: AccountPlace, seed: &Blob) -> Reply<'_, ()> {
        self.change_account(place, |row| row.seed.blob = seed.clone())
    }

    fn enrol_seed(&self, place: AccountPlace, seed: &SealedSeed, last_step: TimeStep, now: Timestamp) -> Reply<'_, ()> {
        self.change_account(place, |row| {
            row.seed = seed.clone();
            row.last_step = last_step;
            row.wrong_passcodes = WrongPasscodes::default();
            row.passcode_enrolled_at = now;
        })
    }

    fn put_pending_seed(&self, place: AccountPlace, pending: &PendingSeed) -> Reply<'_, ()> {
        self.change_account(place, |row| row.pending = Some(TriedSeed { pending: pending.clone(), tried: 0 }))
    }

    fn pending_seed(&self, place: AccountPlace) -> Reply<'_, Option<(PendingSeed, u32)>> {
        let mut state = self.state();
        let pending = state.account_in(place.0, place.1).and_then(|row| row.pending.clone());
        done(pending.map(|TriedSeed { pending, tried }| (pending, tried)))
    }

    fn count_confirmation(&self, place: AccountPlace) -> Reply<'_, ()> {
        self.change_account(place, |row| row.pending.iter_mut().for_each(|seed| seed.tried += 1))
    }

    fn remove_pending_seed(&self, place: AccountPlace) -> Reply<'_, ()> {
        self.change_account(place, |row| row.pending = None)
    }

    fn lock_recovery_code(&self, (organization, account): AccountPlace, code: &Digest) -> Reply<'_, bool> {
        let mut state = self.state();
        done(state.account_in(organization, account).is_some_and(|row| row.recovery_codes.contains(code)))
    }

    fn remove_recovery_code(&self, place: AccountPlace, code: &Digest) -> Reply<'_, ()> {
        self.change_account(place, |row| row.recovery_codes.retain(|kept| kept != code))
    }

    fn replace_recovery_codes(&self, place: AccountPlace, codes: &[Digest]) -> Reply<'_, ()> {
        self.change_account(place, |row| row.recovery_codes = codes.to_vec())
    }

    fn leave_notice(&self, place: AccountPlace, code: NoticeCode, at: Timestamp) -> Reply<'_, ()> {
        self.change_account(place, |row| row.notify(code, at))
    }
}
