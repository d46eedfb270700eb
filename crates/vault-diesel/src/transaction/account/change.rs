//! Changing an account.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock_session, lock_existing_organization, lock_organization};
use super::super::instance_key::require_active;
use super::admins::{self, OtherAdmins};
use super::create::NO_STEP;
use super::notices::{self, notices_of};
use super::recovery_codes::{self, recovery_codes_of};
use super::row::{SignedRow, account_of, sign};
use super::{directory, invitation_row, pending_seed};
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::rows::entity_of;
use crate::rows::logins::{self, classes_of, logins_of};
use crate::rows::sessions::sessions_of;
use crate::schema::{account_logins, accounts, idempotency_keys};
use crate::stored::StoredId as _;
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::account::{AccountRights, takes_last_admin};
use vault_core::digest::Digest;
use vault_core::entity::Kind;
use vault_core::id::KeyId;
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountChange, AccountPlace, ChangeAccount};
use vault_core::principal::{Denial, Principal};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

impl Transaction for Command<ChangeAccount> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        let admins = authorize(tx, self).await?;
        let Self { principal, now, payload, .. } = self;
        let grant = &payload.after.grant;
        if !principal.reaches(grant.organization) {
            return Err(Refusal::NotFound.into());
        }
        let row = account_of(grant.organization.stored(), grant.account.stored()).select(SignedRow::as_select());
        let Some(row) = tx.first(locked(row, Update)).await? else { return Err(Refusal::NotFound.into()) };
        let before = row.decode()?;
        if before.version != payload.version {
            return Err(Refusal::Contended.into());
        }
        if *principal != Principal::Operator
            && admins
                .as_ref()
                .is_none_or(|others| takes_last_admin(&before.grant, payload.grant_after(), others.active))
        {
            return Err(Refusal::LastAdmin.into());
        }
        require_active(tx, keys(payload)).await?;
        apply(tx, payload, *now).await?;
        if let Some(notice) = payload.change.admins_notice(grant.account) {
            for admin in admins.into_iter().flat_map(|others| others.all) {
                notices::leave(tx, grant.organization, admin, notice, *now).await?;
            }
        }
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

/// Authorizes the principal. Returns the admins other than the account to be changed, if the change depends on them.
async fn authorize(tx: &Tx<'_>, command: &Command<ChangeAccount>) -> Result<Option<OtherAdmins>, Failure> {
    let AccountRights { account: target, organization: targets, .. } = command.payload.after.grant;
    let (organization, admin) = match &command.principal {
        Principal::Operator if command.payload.change.admins_notice(target).is_none() => return Ok(None),
        Principal::Operator => {
            // The order of locks: rows that are inserted refer to the organization. Without it there is no such account.
            let _exists = lock_existing_organization(tx, targets).await?;
            return admins::lock(tx, targets, target, target).await.map(Some);
        }
        Principal::Session(admin) => (admin.organization, admin.account),
        Principal::Embedder(admin) => (admin.organization, admin.account),
    };
    if !lock_organization(tx, organization).await? {
        return Err(Denial::OrganizationDisabled.into());
    }
    let others = admins::lock(tx, organization, admin, target).await?;
    if let Principal::Session(admin) = &command.principal {
        authorize_and_lock_session(tx, admin, command.now).await?;
    }
    Ok(Some(others))
}

/// The instance keys under which the change is sealed and signed.
fn keys(payload: &ChangeAccount) -> impl Iterator<Item = KeyId> {
    let sealed = match &payload.change {
        AccountChange::ReEnrol { invitation, .. } => Some(invitation.digest.key),
        AccountChange::Grant | AccountChange::Unlock | AccountChange::Delete => None,
    };
    sealed.into_iter().chain([payload.digest.key])
}

async fn apply(tx: &Tx<'_>, payload: &ChangeAccount, now: Timestamp) -> Result<(), Failure> {
    let grant = &payload.after.grant;
    let (organization, account) = (grant.organization, grant.account);
    let row = account_of(organization.stored(), account.stored());
    if !matches!(payload.change, AccountChange::Unlock) {
        tx.execute(diesel::delete(sessions_of(organization.stored(), account.stored()))).await?;
        pending_seed::delete(tx, organization, account).await?;
    }
    match &payload.change {
        AccountChange::Grant | AccountChange::Unlock => {}
        AccountChange::ReEnrol { invitation } => {
            // No secret remains that could become valid again. The lengths remain, so that a login reads as much as before.
            let (password, seed): (Vec<u8>, Vec<u8>) = tx.one(row.select((accounts::password, accounts::seed))).await?;
            let erased = SealedSeed { id: payload.after.seed, blob: Blob::from_bytes(vec![0; seed.len()]) };
            set_passcode(tx, grant, &erased, &[], NO_STEP, now).await?;
            tx.execute(diesel::update(row).set(accounts::password.eq(vec![0; password.len()]))).await?;
            remove_invitation(tx, grant).await?;
            invitation_row::insert(tx, invitation).await?;
        }
        AccountChange::Delete => return delete(tx, grant).await,
    }
    if payload.change.unlocks() {
        logins::reset_all(tx, organization, account).await?;
    }
    if let Some(notice) = payload.change.notice() {
        notices::leave(tx, organization, account, notice, now).await?;
    }
    match payload.change {
        // Changes nothing that the MAC covers.
        AccountChange::Unlock => Ok(()),
        _ => sign(tx, &payload.after, &payload.digest).await,
    }
}

/// Removes the invitation by which the owner of the account may enrol again.
async fn remove_invitation(tx: &Tx<'_>, grant: &AccountRights) -> Result<(), Failure> {
    match invitation_row::lock(tx, grant.organization, grant.account).await? {
        Some(earlier) => invitation_row::remove(tx, &earlier).await,
        None => Ok(()),
    }
}

/// Sets the TOTP secret of an account, whose steps up to `last_step` are used, and its recovery codes.
pub(super) async fn set_passcode(
    tx: &Tx<'_>,
    grant: &AccountRights,
    seed: &SealedSeed,
    codes: &[Digest],
    last_step: TimeStep,
    now: Timestamp,
) -> Result<(), Failure> {
    set_seed(tx, (grant.organization, grant.account), seed, last_step, now).await?;
    recovery_codes::replace(tx, grant.organization, grant.account, codes).await
}

/// Sets the TOTP secret of an account, whose steps up to `last_step` are used.
pub(crate) async fn set_seed(
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

async fn delete(tx: &Tx<'_>, grant: &AccountRights) -> Result<(), Failure> {
    let (organization, account) = (grant.organization.stored(), grant.account.stored());
    directory::remove(tx, grant.organization, grant.account).await?;
    remove_invitation(tx, grant).await?;
    tx.execute(diesel::delete(notices_of(organization, account))).await?;
    tx.execute(diesel::delete(entity_of(organization, Kind::SetAside.as_str(), account))).await?;
    tx.execute(diesel::delete(recovery_codes_of(organization, account))).await?;
    logins::lock_all(tx, grant.organization, grant.account).await?;
    tx.execute(diesel::delete(classes_of(organization, account))).await?;
    tx.execute(diesel::delete(logins_of(organization, account))).await?;
    let idempotency_keys = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization))
        .filter(idempotency_keys::account_id.eq(account));
    tx.execute(diesel::delete(idempotency_keys)).await?;
    tx.execute(diesel::delete(account_of(organization, account))).await?;
    Ok(())
}
