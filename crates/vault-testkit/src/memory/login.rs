//! The rows of logins. The decoy account has none, because their content has no effect.

use super::row::AccountRow;
use super::rows::{MemoryRows, done};
use vault_core::account::AccountLogins;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{BucketKey, LoginNetwork, ThrottleCounter, ThrottleCounters, WrongPasscodes};
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountPlace, LoginRows, Reply};
use vault_core::time::Timestamp;

impl MemoryRows<'_> {
    /// Reads the rows of an account, or those of one without rows.
    pub(super) fn with_account<T>(
        &self,
        place: AccountPlace,
        read: impl FnOnce(&AccountRow) -> T,
    ) -> Reply<'static, T> {
        done(read(self.state().accounts.get(&place).unwrap_or(&AccountRow::default())))
    }

    /// Changes the rows of an account, if they exist.
    pub(super) fn change_account(
        &self,
        place: AccountPlace,
        change: impl FnOnce(&mut AccountRow),
    ) -> Reply<'static, ()> {
        self.state().accounts.get_mut(&place).map(change);
        done(())
    }
}

impl LoginRows for MemoryRows<'_> {
    fn logins(
        &self,
        organization: OrganizationId,
        accounts: &[AccountId],
        now: Timestamp,
    ) -> Reply<'_, Vec<(AccountId, AccountLogins)>> {
        let state = self.state();
        let found = accounts.iter().filter_map(|id| Some((*id, state.accounts.get(&(organization, *id))?.logins(now))));
        done(found.collect())
    }

    fn lock_buckets(&self, place: AccountPlace, _: Option<&Digest>) -> Reply<'_, Option<ThrottleCounters>> {
        done(self.state().accounts.get(&place).map(|row| row.classes.clone()))
    }

    fn reset_buckets(&self, place: AccountPlace) -> Reply<'_, ()> {
        self.change_account(place, AccountRow::unlock)
    }

    fn set_bucket(&self, place: AccountPlace, key: &BucketKey, counter: ThrottleCounter) -> Reply<'_, ()> {
        self.change_account(place, |row| match key {
            BucketKey::Shared => row.classes.shared = counter,
            BucketKey::Network(network) => {
                let kept = row.classes.networks.iter_mut().filter(|kept| kept.network == *network);
                kept.for_each(|kept| kept.class = counter);
            }
        })
    }

    fn forget_network(&self, place: AccountPlace, network: &Digest) -> Reply<'_, ()> {
        self.change_account(place, |row| row.classes.networks.retain(|kept| kept.network != *network))
    }

    fn put_network(&self, place: AccountPlace, network: &Digest, last_login_at: Timestamp) -> Reply<'_, ()> {
        self.change_account(place, |row| {
            row.classes.networks.retain(|kept| kept.network != *network);
            let class = ThrottleCounter::default();
            row.classes.networks.push(LoginNetwork { network: *network, last_login_at, class });
        })
    }

    fn known_network(&self, network: &Digest) -> Reply<'_, Option<Timestamp>> {
        let state = self.state();
        let known = state.accounts.values().flat_map(|row| &row.classes.networks);
        done(known.filter(|kept| kept.network == *network).map(|kept| kept.last_login_at).max())
    }

    fn note_network(&self, _: &Digest, _: Timestamp, _: Timestamp) -> Reply<'_, ()> {
        done(()) // found in the networks of the accounts
    }

    fn lock_logins(&self, place: AccountPlace) -> Reply<'_, (TimeStep, WrongPasscodes)> {
        let row = self.state().accounts.get(&place).map(|row| (row.last_step, row.wrong_passcodes));
        done(row.unwrap_or((TimeStep(i64::MAX), WrongPasscodes::default())))
    }

    fn set_last_step(&self, place: AccountPlace, step: TimeStep) -> Reply<'_, ()> {
        self.change_account(place, |row| row.last_step = step)
    }

    fn set_last_login(&self, place: AccountPlace, at: Timestamp) -> Reply<'_, ()> {
        self.change_account(place, |row| row.last_login_at = Some(at))
    }

    fn set_refused(&self, place: AccountPlace, wrong: WrongPasscodes, at: Timestamp) -> Reply<'_, ()> {
        self.change_account(place, |row| (row.last_refused_at, row.wrong_passcodes) = (Some(at), wrong))
    }
}
