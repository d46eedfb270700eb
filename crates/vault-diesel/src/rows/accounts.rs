//! Rows of accounts, in addition to their documents.

mod notices;
mod recovery_codes;

use self::notices::notices_of;
use self::recovery_codes::recovery_codes_of;
use super::logins::{self, SHARED_CLASS, classes_of, logins_of};
use super::{TxRows, several, then};
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{account_logins, attempt_classes, idempotency_keys, recovery_codes as codes};
use crate::stored::{AnyId, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountPlace, AccountRows, Reply};
use vault_core::time::Timestamp;

async fn insert(tx: &Tx<'_>, (organization, account): AccountPlace, last_step: TimeStep) -> Result<(), Failure> {
    let (organization, account) = (organization.stored(), account.stored());
    let logins = diesel::insert_into(account_logins::table).values((
        account_logins::organization_id.eq(organization),
        account_logins::account_id.eq(account),
        account_logins::last_step.eq(last_step.0),
        account_logins::wrong_passcodes.eq(0),
    ));
    tx.execute(logins).await?;
    let shared_bucket = diesel::insert_into(attempt_classes::table).values((
        attempt_classes::organization_id.eq(organization),
        attempt_classes::account_id.eq(account),
        attempt_classes::network.eq(SHARED_CLASS),
        attempt_classes::attempts.eq(0),
    ));
    tx.execute(shared_bucket).await?;
    Ok(())
}

async fn remove(tx: &Tx<'_>, (of, id): AccountPlace) -> Result<(), Failure> {
    let (organization, account) = (of.stored(), id.stored());
    tx.execute(diesel::delete(notices_of(organization, account))).await?;
    tx.execute(diesel::delete(recovery_codes_of(organization, account))).await?;
    logins::lock_all(tx, of, id).await?;
    tx.execute(diesel::delete(classes_of(organization, account))).await?;
    tx.execute(diesel::delete(logins_of(organization, account))).await?;
    let idempotency_keys = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization))
        .filter(idempotency_keys::account_id.eq(account));
    tx.execute(diesel::delete(idempotency_keys)).await?;
    Ok(())
}

impl AccountRows for TxRows<'_> {
    fn insert_account(&self, place: AccountPlace, last_step: TimeStep) -> Reply<'_, ()> {
        several(insert(&self.tx, place, last_step))
    }

    fn remove_account(&self, place: AccountPlace) -> Reply<'_, ()> {
        several(remove(&self.tx, place))
    }

    fn reset_passcodes(&self, (organization, account): AccountPlace, last_step: TimeStep) -> Reply<'_, ()> {
        let logins = diesel::update(logins_of(organization.stored(), account.stored())).set((
            account_logins::last_step.eq(last_step.0),
            account_logins::wrong_passcodes.eq(0),
            account_logins::wrong_at.eq(None::<i64>),
        ));
        then(self.tx.execute(logins), |_| Ok(()))
    }

    fn count_recovery_codes(&self, (organization, account): AccountPlace) -> Reply<'_, u32> {
        let count = self.tx.one(recovery_codes_of(organization.stored(), account.stored()).count());
        then(count, |count: i64| Ok(u32::try_from(count).unwrap_or(u32::MAX)))
    }

    fn lock_recovery_code(&self, (organization, account): AccountPlace, code: &Digest) -> Reply<'_, bool> {
        let row = recovery_codes_of(organization.stored(), account.stored())
            .filter(codes::code.eq(code.as_bytes().as_slice()))
            .select(codes::account_id);
        then(self.tx.first::<AnyId, _>(locked(row, Update)), |row| Ok(row.is_some()))
    }

    fn remove_recovery_code(&self, (organization, account): AccountPlace, code: &Digest) -> Reply<'_, ()> {
        let own = recovery_codes_of(organization.stored(), account.stored());
        let code = own.filter(codes::code.eq(code.as_bytes().as_slice()));
        then(self.tx.execute(diesel::delete(code)), |_| Ok(()))
    }

    fn replace_recovery_codes(&self, (organization, account): AccountPlace, new: &[Digest]) -> Reply<'_, ()> {
        let new = new.to_vec();
        several(async move { recovery_codes::replace(&self.tx, organization, account, &new).await })
    }

    fn notices(&self, (organization, account): AccountPlace) -> Reply<'_, Vec<StoredNotice>> {
        several(notices::read(&self.tx, organization, account))
    }

    fn leave_notice(&self, (organization, account): AccountPlace, code: NoticeCode, at: Timestamp) -> Reply<'_, ()> {
        several(notices::leave(&self.tx, organization, account, code, at))
    }
}
