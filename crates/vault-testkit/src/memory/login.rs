//! The rows of accounts and their logins. Decoys have none, because their content has no effect.

use super::row::{AccountRow, TriedSeed};
use super::rows::{MemoryRows, done};
use vault_core::account::{OwnAccount, SignedAccount};
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::{Digest, LookupDigests, RowMac};
use vault_core::lockout::{BucketKey, LoginNetwork, ThrottleCounter, ThrottleCounters, WrongPasscodes};
use vault_core::login::ReservedAccount;
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::passcode::{PendingSeed, TimeStep};
use vault_core::port::{AccountPlace, AccountRows, DecoyRows, LoginRows, Reply};
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

impl MemoryRows<'_> {
    /// Reads or changes the row of an account, if it exists.
    fn with_account<T>(
        &self,
        (organization, account): AccountPlace,
        act: impl FnOnce(&mut AccountRow) -> T,
    ) -> Reply<'static, Option<T>> {
        done(self.state().account_in(organization, account).map(act))
    }

    /// Changes the row of an account, if it exists.
    fn change_account(
        &self,
        (organization, account): AccountPlace,
        change: impl FnOnce(&mut AccountRow),
    ) -> Reply<'static, ()> {
        self.state().account_in(organization, account).map(change);
        done(())
    }
}

impl AccountRows for MemoryRows<'_> {
    fn account_of(&self, address: &LookupDigests) -> Reply<'_, Option<AccountPlace>> {
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
