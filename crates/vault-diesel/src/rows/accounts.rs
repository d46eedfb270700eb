//! Accounts.

pub(crate) mod directory;
pub(crate) mod listing;
mod notices;
pub(crate) mod pending_seed;
mod recovery_codes;
pub(crate) mod row;

use self::notices::notices_of;
use self::recovery_codes::recovery_codes_of;
use self::row::{SignedRow, TABLE, account_of, sign};
use super::logins::{self, SHARED_CLASS, classes_of, logins_of};
use super::{TxRows, entities_of, entity_of, several, then};
use crate::db::{self, Tx, Unlocked, Update, locked};
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, attempt_classes, entities, idempotency_keys, recovery_codes as codes};
use crate::stored::{AnyId, CodeColumns, StoredId as _};
use diesel::dsl::{exists, not};
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::account::{Account, AccountRights, NewAccount, OwnAccount, SignedAccount};
use vault_core::digest::{Digest, RowMac};
use vault_core::email::EmailAddress;
use vault_core::entity::Kind;
use vault_core::id::OrganizationId;
use vault_core::notice::NoticeCode;
use vault_core::operation::Access;
use vault_core::passcode::{PendingSeed, TimeStep};
use vault_core::port::{AccountPlace, AccountRows, Reply};
use vault_core::role::{Action, Role};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

async fn insert(tx: &Tx<'_>, new: &NewAccount) -> Result<(), Failure> {
    let SignedAccount { grant, version, sessions, .. } = &new.signed;
    let (organization, account) = (grant.organization.stored(), grant.account.stored());
    let row = diesel::insert_into(accounts::table).values((
        accounts::organization_id.eq(organization),
        accounts::id.eq(account),
        accounts::email.eq(grant.email.as_str()),
        accounts::role.eq(grant.role.as_str()),
        accounts::state.eq(grant.state.as_str()),
        accounts::grant_digest.eq(new.digest.code.as_bytes().as_slice()),
        accounts::grant_key_id.eq(new.digest.key.stored()),
        accounts::version.eq(version),
        accounts::password.eq(new.password.blob.as_bytes()),
        accounts::password_id.eq(new.signed.password.stored()),
        accounts::seed_id.eq(new.seed.id.stored()),
        accounts::sessions_since.eq(sessions.since),
        accounts::kept_session.eq(sessions.kept.stored()),
        accounts::seed.eq(new.seed.blob.as_bytes()),
        accounts::created_at.eq(new.created_at.as_millis()),
        accounts::passcode_enrolled_at.eq(new.created_at.as_millis()),
    ));
    tx.execute(row).await?;
    let logins = diesel::insert_into(account_logins::table).values((
        account_logins::organization_id.eq(organization),
        account_logins::account_id.eq(account),
        account_logins::last_step.eq(new.last_step.0),
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
    recovery_codes::insert(tx, grant.organization, grant.account, &new.recovery_codes).await
}

/// Stores a TOTP secret, whose steps up to `last_step` are used, and resets wrong passcodes.
async fn enrol_seed(
    tx: &Tx<'_>,
    (organization, account): AccountPlace,
    seed: &SealedSeed,
    last_step: TimeStep,
    now: Timestamp,
) -> Result<(), Failure> {
    let (organization, account) = (organization.stored(), account.stored());
    let row = diesel::update(account_of(organization, account))
        .set((accounts::seed.eq(seed.blob.as_bytes()), accounts::passcode_enrolled_at.eq(now.as_millis())));
    tx.execute(row).await?;
    let logins = diesel::update(logins_of(organization, account)).set((
        account_logins::last_step.eq(last_step.0),
        account_logins::wrong_passcodes.eq(0),
        account_logins::wrong_at.eq(None::<i64>),
    ));
    tx.execute(logins).await?;
    Ok(())
}

async fn remove(tx: &Tx<'_>, (of, id): AccountPlace) -> Result<(), Failure> {
    let (organization, account) = (of.stored(), id.stored());
    directory::remove(tx, (of, id)).await?;
    tx.execute(diesel::delete(notices_of(organization, account))).await?;
    tx.execute(diesel::delete(entity_of(organization, Kind::SetAside.as_str(), account))).await?;
    tx.execute(diesel::delete(recovery_codes_of(organization, account))).await?;
    logins::lock_all(tx, of, id).await?;
    tx.execute(diesel::delete(classes_of(organization, account))).await?;
    tx.execute(diesel::delete(logins_of(organization, account))).await?;
    let idempotency_keys = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization))
        .filter(idempotency_keys::account_id.eq(account));
    tx.execute(diesel::delete(idempotency_keys)).await?;
    tx.execute(diesel::delete(account_of(organization, account))).await?;
    Ok(())
}

impl AccountRows for TxRows<'_> {
    fn account_of(&self, address: &EmailAddress) -> Reply<'_, Option<AccountPlace>> {
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

    fn found_account(&self, place: AccountPlace, now: Timestamp) -> Reply<'_, Option<Account>> {
        several(async move { listing::find(&self.tx, place, now).await })
    }

    fn listed_accounts(
        &self,
        of: Option<OrganizationId>,
        after: Option<AccountPlace>,
        limit: usize,
        now: Timestamp,
    ) -> Reply<'_, Vec<Account>> {
        several(async move { listing::list(&self.tx, of, after, limit, now).await })
    }

    fn count_accounts(&self, organization: OrganizationId) -> Reply<'_, i64> {
        several(async move {
            let accounts = accounts::table.filter(accounts::organization_id.eq(organization.stored()));
            let accounts: i64 = self.tx.one(accounts.count()).await?;
            // Those of accounts re-enrol them.
            let of_account = accounts::table
                .filter(accounts::organization_id.eq(entities::organization_id))
                .filter(accounts::id.eq(entities::id));
            let invited = entities_of(organization.stored(), Kind::Invitation.as_str()).filter(not(exists(of_account)));
            let invited: i64 = self.tx.one(invited.count()).await?;
            Ok(accounts + invited)
        })
    }

    fn admins(&self, organization: OrganizationId) -> Reply<'_, Vec<AccountRights>> {
        let managing = Role::ALL.into_iter().filter(|role| role.permits(Action::ManageAccounts)).map(Role::as_str);
        let rows = accounts::table
            .filter(accounts::organization_id.eq(organization.stored()))
            .filter(accounts::role.eq_any(managing.collect::<Vec<&str>>()))
            .order(accounts::id)
            .select(SignedRow::as_select());
        then(self.tx.load(rows), |rows: Vec<SignedRow>| rows.into_iter().map(|row| Ok(row.decode()?.grant)).collect())
    }

    fn enter_address(&self, address: &EmailAddress, place: AccountPlace) -> Reply<'_, bool> {
        let address = address.clone();
        several(async move { directory::enter(&self.tx, &address, place).await })
    }

    fn insert_account(&self, new: &NewAccount) -> Reply<'_, ()> {
        let new = new.clone();
        several(async move { insert(&self.tx, &new).await })
    }

    fn remove_account(&self, place: AccountPlace) -> Reply<'_, ()> {
        several(async move { remove(&self.tx, place).await })
    }

    fn erase_secrets(&self, place @ (organization, account): AccountPlace, now: Timestamp) -> Reply<'_, ()> {
        several(async move {
            let row = account_of(organization.stored(), account.stored());
            let lengths = row.select((accounts::password, accounts::seed));
            let (password, seed): (Vec<u8>, Vec<u8>) = self.tx.one(lengths).await?;
            let erased = SealedSeed { id: SignedAccount::NO_SEED, blob: Blob::from_bytes(vec![0; seed.len()]) };
            enrol_seed(&self.tx, place, &erased, TimeStep::NONE, now).await?;
            recovery_codes::replace(&self.tx, organization, account, &[]).await?;
            self.tx.execute(diesel::update(row).set(accounts::password.eq(vec![0; password.len()]))).await?;
            Ok(())
        })
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
        several(async move { enrol_seed(&self.tx, place, &seed, last_step, now).await })
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

    fn leave_notice(&self, (organization, account): AccountPlace, code: NoticeCode, at: Timestamp) -> Reply<'_, ()> {
        several(async move { notices::leave(&self.tx, organization, account, code, at).await })
    }
}
