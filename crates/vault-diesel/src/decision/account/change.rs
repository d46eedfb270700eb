//! Changing an account, and what then no longer holds.

use super::super::backend::{Connection, RunQuery, for_update, narrow};
use super::super::login::attempts;
use super::super::organization::keys::require_active;
use super::super::{Answer, Decided, Decision, Verdict};
use super::accounts::{NO_STEP, replace_recovery_codes};
use super::admins::{self, OtherAdmins};
use super::invitations::hold_presence;
use super::row::{SignedRow, row_of, sign, signed_columns};
use super::{directory, invitation_row, notices, pending_seed};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{
    account_logins, account_notices, accounts, attempt_classes, idempotency_keys, recovery_codes, sessions,
};
use crate::stored::StoredId as _;
use crate::transaction::authorize::{authorize_and_lock_session, lock_organization};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, takes_last_admin};
use vault_core::digest::Digest;
use vault_core::id::KeyId;
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountChange, ChangeAccount};
use vault_core::principal::{Denial, Principal};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

/// The rows of a table that belong to an account.
macro_rules! rows_of {
    ($owner:expr, $table:ident) => {
        $table::table
            .filter($table::organization_id.eq($owner.organization.stored()))
            .filter(narrow!($table::account_id.eq($owner.account.stored())))
    };
}

impl Decision for ChangeAccount {
    /// The admins besides the account to be changed, where they matter.
    type Held = Option<OtherAdmins>;
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<Option<OtherAdmins>, Failure> {
        let AccountGrant { account: target, organization: targets, .. } = command.act.after.grant;
        let (organization, admin) = match &command.principal {
            Principal::Operator if command.act.change.admins_notice(target).is_none() => return Ok(None),
            Principal::Operator => {
                // The order of locks: what is inserted refers to the organization.
                let _ = hold_presence(connection, targets).await?; // gone, if there is no such account
                return admins::take(connection, targets, target, target).await.map(Some);
            }
            Principal::Session(admin) => (admin.organization, admin.account),
            Principal::Embedder(admin) => (admin.organization, admin.account),
        };
        if !lock_organization(&connection.tx(), organization).await? {
            return Err(Denial::OrganizationClosed.into());
        }
        let others = admins::take(connection, organization, admin, target).await?;
        if let Principal::Session(admin) = &command.principal {
            authorize_and_lock_session(&connection.tx(), admin, command.now).await?;
        }
        Ok(Some(others))
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, admins: Option<OtherAdmins>) -> Decided<Answer> {
        let Command { principal, now, act, .. } = command;
        let grant = &act.after.grant;
        if !principal.reaches(grant.organization) {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        }
        let row: Option<SignedRow> =
            for_update!(row_of!(grant).select(signed_columns!())).get_result(connection).await.optional()?;
        let Some(row) = row else { return Ok(Verdict::Refused(Err(Refusal::NotFound))) };
        let before = row.decode()?;
        if before.version != act.version {
            return Ok(Verdict::Refused(Err(Refusal::Contended)));
        }
        if *principal != Principal::Operator
            && admins.as_ref().is_none_or(|others| takes_last_admin(&before.grant, act.grant_after(), others.active))
        {
            return Ok(Verdict::Refused(Err(Refusal::LastAdmin)));
        }
        require_active(connection, keys(act)).await?;
        apply(connection, act, *now).await?;
        if let Some(notice) = act.change.admins_notice(grant.account) {
            for admin in admins.into_iter().flat_map(|others| others.all) {
                notices::leave(connection, grant.organization, admin, notice, *now).await?;
            }
        }
        Ok(Verdict::Done(Ok(())))
    }
}

/// The instance keys that the change is sealed and signed under.
fn keys(act: &ChangeAccount) -> impl Iterator<Item = KeyId> {
    let sealed = match &act.change {
        AccountChange::Password(password) => password.0.key(),
        AccountChange::Passcode { seed, .. } => seed.blob.key(),
        AccountChange::ReEnrol { invitation, .. } => Some(invitation.digest.key),
        AccountChange::Grant | AccountChange::Unlock | AccountChange::Delete => None,
    };
    sealed.into_iter().chain([act.digest.key])
}

async fn apply(connection: &mut Connection, act: &ChangeAccount, now: Timestamp) -> Result<(), Failure> {
    let grant = &act.after.grant;
    let (organization, account) = (grant.organization, grant.account);
    if !matches!(act.change, AccountChange::Unlock) {
        diesel::delete(rows_of!(grant, sessions)).execute(connection).await?;
        pending_seed::clear(connection, organization, account).await?;
    }
    match &act.change {
        AccountChange::Grant | AccountChange::Unlock => {}
        AccountChange::Password(password) => {
            update(row_of!(grant)).set(accounts::password.eq(password.0.as_bytes())).execute(connection).await?;
        }
        AccountChange::Passcode { seed, recovery_codes } => {
            set_passcode(connection, grant, seed, recovery_codes, NO_STEP, now).await?;
        }
        AccountChange::ReEnrol { invitation } => {
            // Nothing is left that could be put back in force. As long as it was, so that a login reads as much as ever.
            let (password, seed): (Vec<u8>, Vec<u8>) =
                row_of!(grant).select((accounts::password, accounts::seed)).get_result(connection).await?;
            let gone = SealedSeed { id: act.after.seed, blob: Blob::from_bytes(vec![0; seed.len()]) };
            set_passcode(connection, grant, &gone, &[], NO_STEP, now).await?;
            update(row_of!(grant)).set(accounts::password.eq(vec![0; password.len()])).execute(connection).await?;
            remove_invitation(connection, grant).await?;
            invitation_row::insert(connection, invitation).await?;
        }
        AccountChange::Delete => return delete(connection, grant).await,
    }
    if act.change.unlocks() {
        attempts::reset_all(connection, organization, account).await?;
    }
    if let Some(notice) = act.change.notice() {
        notices::leave(connection, organization, account, notice, now).await?;
    }
    sign(connection, &act.after, &act.digest).await
}

/// Removes the invitation by which the account's owner may enrol again.
async fn remove_invitation(connection: &mut Connection, grant: &AccountGrant) -> Result<(), Failure> {
    match invitation_row::hold(connection, grant.organization, grant.account).await? {
        Some(earlier) => invitation_row::remove(connection, &earlier).await,
        None => Ok(()),
    }
}

/// Gives an account this seed, whose codes up to `last_step` are spent, and these recovery codes.
pub(crate) async fn set_passcode(
    connection: &mut Connection,
    grant: &AccountGrant,
    seed: &SealedSeed,
    codes: &[Digest],
    last_step: TimeStep,
    now: Timestamp,
) -> Result<(), Failure> {
    update(row_of!(grant))
        .set((accounts::seed.eq(seed.blob.as_bytes()), accounts::passcode_enrolled_at.eq(now.as_millis())))
        .execute(connection)
        .await?;
    update(rows_of!(grant, account_logins))
        .set((
            account_logins::last_step.eq(last_step.0),
            account_logins::wrong_passcodes.eq(0),
            account_logins::wrong_at.eq(None::<i64>),
        ))
        .execute(connection)
        .await?;
    replace_recovery_codes(connection, grant.organization, grant.account, codes).await
}

async fn delete(connection: &mut Connection, grant: &AccountGrant) -> Result<(), Failure> {
    directory::remove(connection, grant.organization, grant.account).await?;
    remove_invitation(connection, grant).await?;
    diesel::delete(rows_of!(grant, account_notices)).execute(connection).await?;
    diesel::delete(rows_of!(grant, recovery_codes)).execute(connection).await?;
    attempts::take_all(connection, grant.organization, Some(grant.account)).await?;
    diesel::delete(rows_of!(grant, attempt_classes)).execute(connection).await?;
    diesel::delete(rows_of!(grant, account_logins)).execute(connection).await?;
    diesel::delete(rows_of!(grant, idempotency_keys)).execute(connection).await?;
    diesel::delete(row_of!(grant)).execute(connection).await?;
    Ok(())
}
