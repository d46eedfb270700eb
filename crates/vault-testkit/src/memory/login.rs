//! The rows of logins. Decoys have none, because their content has no effect.

use super::row::AccountRow;
use super::rows::{MemoryRows, done};
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::Digest;
use vault_core::lockout::{BucketKey, LoginNetwork, ThrottleCounter, ThrottleCounters, WrongPasscodes};
use vault_core::login::ReservedAccount;
use vault_core::organization::OrganizationState;
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountPlace, DecoyRows, LoginRows, Reply};
use vault_core::sealed::{SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

impl MemoryRows<'_> {
    /// Reads or changes the row of an account, if it exists.
    pub(super) fn with_account<T>(
        &self,
        (organization, account): AccountPlace,
        act: impl FnOnce(&mut AccountRow) -> T,
    ) -> Reply<'static, Option<T>> {
        done(self.state().account_in(organization, account).map(act))
    }

    /// Changes the row of an account, if it exists.
    pub(super) fn change_account(
        &self,
        (organization, account): AccountPlace,
        change: impl FnOnce(&mut AccountRow),
    ) -> Reply<'static, ()> {
        self.state().account_in(organization, account).map(change);
        done(())
    }
}

impl LoginRows for MemoryRows<'_> {
    fn login_account(
        &self,
        (organization, account): AccountPlace,
    ) -> Reply<'_, Option<(OrganizationState, ReservedAccount)>> {
        let mut state = self.state();
        let organization_state = match state.organization_is_active(organization) {
            true => OrganizationState::Active,
            false => OrganizationState::Disabled,
        };
        let reserved = state.account_in(organization, account).map(|row| ReservedAccount {
            signed: row.signed.clone(),
            digest: row.digest,
            password: SealedPassword { id: row.signed.password, blob: row.password.blob.clone() },
            seed: SealedSeed { id: row.signed.seed, blob: row.seed.blob.clone() },
            attempts: 0,
        });
        done(reserved.map(|reserved| (organization_state, reserved)))
    }

    fn lock_buckets(&self, place: AccountPlace, _: Option<&Digest>) -> Reply<'_, Option<ThrottleCounters>> {
        self.with_account(place, |row| row.classes.clone())
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

    fn lock_logins(&self, (organization, account): AccountPlace) -> Reply<'_, (TimeStep, WrongPasscodes)> {
        let mut state = self.state();
        let row = state.account_in(organization, account).map(|row| (row.last_step, row.wrong_passcodes));
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

impl DecoyRows for MemoryRows<'_> {
    fn read_decoy(&self, _: u16) -> Reply<'_, ()> {
        done(())
    }

    fn lock_decoy_buckets(&self, _: u16) -> Reply<'_, ()> {
        done(())
    }

    fn write_decoy_bucket(&self, _: u16, _: Timestamp) -> Reply<'_, ()> {
        done(())
    }

    fn decoy_organization(&self, _: u16) -> Reply<'_, ()> {
        done(())
    }

    fn lock_decoy_account(&self, _: u16) -> Reply<'_, ()> {
        done(())
    }

    fn lock_decoy_logins(&self, _: u16) -> Reply<'_, ()> {
        done(())
    }

    fn write_decoy_logins(&self, _: u16, _: Timestamp) -> Reply<'_, ()> {
        done(())
    }

    fn write_decoy_entry(&self, _: u16, _: &SealedAuditRecord) -> Reply<'_, ()> {
        done(())
    }
}
