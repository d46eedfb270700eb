//! Accounts.

use super::{TxRows, several, then};
use crate::db::{self, Unlocked, Update, locked};
use crate::schema::{accounts, recovery_codes};
use crate::stored::{AnyId, CodeColumns, StoredId as _};
use crate::transaction::account::recovery_codes::recovery_codes_of;
use crate::transaction::account::row::{SignedRow, TABLE, account_of, sign};
use crate::transaction::account::{change, directory, notices, pending_seed, recovery_codes as codes};
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::account::{OwnAccount, SignedAccount};
use vault_core::digest::{Digest, LookupDigests, RowMac};
use vault_core::notice::NoticeCode;
use vault_core::operation::Access;
use vault_core::passcode::{PendingSeed, TimeStep};
use vault_core::port::{AccountPlace, AccountRows, Reply};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

impl AccountRows for TxRows<'_> {
    fn account_of(&self, address: &LookupDigests) -> Reply<'_, Option<AccountPlace>> {
        let address = address.clone();
        several(async move { directory::account_of(&self.tx, &address).await })
    }

    fn account(&self, (organization, account): AccountPlace) -> Reply<'_, Option<(SignedAccount, RowMac)>> {
        let row = account_of(organization.stored(), account.stored())
            .select((SignedRow::as_select(), (accounts::grant_digest, accounts::grant_key_id)));
        let row: db::Reply<'_, Option<(SignedRow, CodeColumns)>> = match self.access {
            Access::Read => self.tx.first(locked(row, Unlocked)),
            Access::Write => self.tx.first(locked(row, Update)),
        };
        then(row, move |row| {
            let Some((signed, digest)) = row else { return Ok(None) };
            Ok(Some((signed.decode()?, digest.decode(TABLE, &account, "grant_digest")?)))
        })
    }

    fn own_account(&self, (organization, account): AccountPlace) -> Reply<'_, Option<OwnAccount>> {
        several(async move {
            let row = account_of(organization.stored(), account.stored())
                .select((SignedRow::as_select(), accounts::passcode_enrolled_at));
            let Some((signed, enrolled_at)) = self.tx.first::<(SignedRow, i64), _>(row).await? else { return Ok(None) };
            let codes: i64 = self.tx.one(recovery_codes_of(organization.stored(), account.stored()).count()).await?;
            Ok(Some(OwnAccount {
                signed: signed.decode()?,
                passcode_enrolled_at: Timestamp::from_millis(enrolled_at),
                recovery_codes_left: u32::try_from(codes).unwrap_or(u32::MAX),
                notices: notices::read(&self.tx, organization, account).await?,
            }))
        })
    }

    fn sign_account(&self, signed: &SignedAccount, digest: &RowMac) -> Reply<'_, ()> {
        let (signed, digest) = (signed.clone(), *digest);
        several(async move { sign(&self.tx, &signed, &digest).await })
    }

    fn set_password(&self, place: AccountPlace, password: &Blob) -> Reply<'_, ()> {
        let row = diesel::update(account_of(place.0.stored(), place.1.stored()));
        then(self.tx.execute(row.set(accounts::password.eq(password.as_bytes()))), |_| Ok(()))
    }

    fn set_seed(&self, place: AccountPlace, seed: &Blob) -> Reply<'_, ()> {
        let row = diesel::update(account_of(place.0.stored(), place.1.stored()));
        then(self.tx.execute(row.set(accounts::seed.eq(seed.as_bytes()))), |_| Ok(()))
    }

    fn enrol_seed(&self, place: AccountPlace, seed: &SealedSeed, last_step: TimeStep, now: Timestamp) -> Reply<'_, ()> {
        let seed = seed.clone();
        several(async move { change::set_seed(&self.tx, place, &seed, last_step, now).await })
    }

    fn put_pending_seed(&self, (organization, account): AccountPlace, pending: &PendingSeed) -> Reply<'_, ()> {
        let pending = pending.clone();
        several(async move { pending_seed::put(&self.tx, organization, account, &pending).await })
    }

    fn pending_seed(&self, (organization, account): AccountPlace) -> Reply<'_, Option<(PendingSeed, u32)>> {
        several(async move { pending_seed::lock(&self.tx, organization, account).await })
    }

    fn count_confirmation(&self, (organization, account): AccountPlace) -> Reply<'_, ()> {
        then(pending_seed::count(&self.tx, organization, account), |_| Ok(()))
    }

    fn remove_pending_seed(&self, (organization, account): AccountPlace) -> Reply<'_, ()> {
        then(pending_seed::delete(&self.tx, organization, account), |_| Ok(()))
    }

    fn lock_recovery_code(&self, (organization, account): AccountPlace, code: &Digest) -> Reply<'_, bool> {
        let row = recovery_codes_of(organization.stored(), account.stored())
            .filter(recovery_codes::code.eq(code.as_bytes().as_slice()))
            .select(recovery_codes::account_id);
        then(self.tx.first::<AnyId, _>(locked(row, Update)), |row| Ok(row.is_some()))
    }

    fn remove_recovery_code(&self, (organization, account): AccountPlace, code: &Digest) -> Reply<'_, ()> {
        let own = recovery_codes_of(organization.stored(), account.stored());
        let code = own.filter(recovery_codes::code.eq(code.as_bytes().as_slice()));
        then(self.tx.execute(diesel::delete(code)), |_| Ok(()))
    }

    fn replace_recovery_codes(&self, (organization, account): AccountPlace, new: &[Digest]) -> Reply<'_, ()> {
        let new = new.to_vec();
        several(async move { codes::replace(&self.tx, organization, account, &new).await })
    }

    fn leave_notice(&self, (organization, account): AccountPlace, code: NoticeCode, at: Timestamp) -> Reply<'_, ()> {
        several(async move { notices::leave(&self.tx, organization, account, code, at).await })
    }
}
