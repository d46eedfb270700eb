//! The rows of accounts, in addition to their documents.

use super::row::AccountRow;
use super::rows::{MemoryRows, done};
use vault_core::digest::Digest;
use vault_core::lockout::WrongPasscodes;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountPlace, AccountRows, Reply};
use vault_core::time::Timestamp;

impl AccountRows for MemoryRows<'_> {
    fn insert_account(&self, place: AccountPlace, last_step: TimeStep) -> Reply<'_, ()> {
        self.state().accounts.insert(place, AccountRow { last_step, ..AccountRow::default() });
        done(())
    }

    fn remove_account(&self, place: AccountPlace) -> Reply<'_, ()> {
        let mut state = self.state();
        state.accounts.remove(&place);
        state.idempotency.retain(|(organization, account, _), _| (*organization, *account) != place);
        done(())
    }

    fn reset_passcodes(&self, place: AccountPlace, last_step: TimeStep) -> Reply<'_, ()> {
        self.change_account(place, |row| {
            (row.last_step, row.wrong_passcodes) = (last_step, WrongPasscodes::default());
        })
    }

    fn count_recovery_codes(&self, place: AccountPlace) -> Reply<'_, u32> {
        self.with_account(place, |row| u32::try_from(row.recovery_codes.len()).unwrap_or(u32::MAX))
    }

    fn lock_recovery_code(&self, place: AccountPlace, code: &Digest) -> Reply<'_, bool> {
        self.with_account(place, |row| row.recovery_codes.contains(code))
    }

    fn remove_recovery_code(&self, place: AccountPlace, code: &Digest) -> Reply<'_, ()> {
        self.change_account(place, |row| row.recovery_codes.retain(|kept| kept != code))
    }

    fn replace_recovery_codes(&self, place: AccountPlace, codes: &[Digest]) -> Reply<'_, ()> {
        self.change_account(place, |row| row.recovery_codes = codes.to_vec())
    }

    fn notices(&self, place: AccountPlace) -> Reply<'_, Vec<StoredNotice>> {
        self.with_account(place, |row| row.notices.clone())
    }

    fn leave_notice(&self, place: AccountPlace, code: NoticeCode, at: Timestamp) -> Reply<'_, ()> {
        self.change_account(place, |row| row.notify(code, at))
    }
}
