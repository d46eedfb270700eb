//! Changing an account, and what then no longer holds.

use super::super::authorize::{hold_organization, judge_and_hold_holder};
use super::super::backend::{Connection, RunQuery, for_update, narrow};
use super::super::{Decided, Verdict, audit};
use super::accounts::{NO_STEP, replace_recovery_codes};
use super::admins::{self, GrantRow};
use super::{notices, pending_seed};
use crate::failure::Failure;
use crate::schema::{
    account_logins, account_notices, accounts, attempt_classes, directory, idempotency_keys, recovery_codes, sessions,
};
use crate::stored::ToIdText as _;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, takes_last_admin};
use vault_core::digest::Digest;
use vault_core::id::AccountId;
use vault_core::lockout::AttemptClass;
use vault_core::port::{AccountChange, ChangeAccount, ChangeAccountOutcome};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::sealed::{SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

/// The rows of a table that belong to the account of a command.
macro_rules! rows_of {
    ($command:expr, $table:ident) => {
        $table::table
            .filter($table::organization_id.eq($command.organization.text()))
            .filter(narrow!($table::account_id.eq($command.account.text())))
    };
}

/// The account's own row.
macro_rules! row_of {
    ($command:expr) => {
        accounts::table
            .filter(accounts::organization_id.eq($command.organization.text()))
            .filter(accounts::id.eq($command.account.text()))
    };
}

pub(crate) async fn change(connection: &mut Connection, command: &ChangeAccount) -> Decided<ChangeAccountOutcome> {
    let other_admins = match &command.authority {
        Principal::Operator => None,
        Principal::Embedder(_) => return Err(Denial::InsufficientRole.into()),
        Principal::Session(admin) => match judge_admin(connection, admin, command.account, command.now).await? {
            Ok(others) => Some(others),
            Err(refusal) => return Ok(Verdict::Undo(ChangeAccountOutcome::Refused(refusal))),
        },
    };
    if !command.authority.reaches(command.organization) {
        return Ok(Verdict::Undo(ChangeAccountOutcome::NotFound));
    }
    let row: Option<(i64, GrantRow)> = for_update!(
        row_of!(command).select((accounts::version, (accounts::id, accounts::email, accounts::role, accounts::state)))
    )
    .get_result(connection)
    .await
    .optional()?;
    let before = match row {
        None => return Ok(Verdict::Undo(ChangeAccountOutcome::NotFound)),
        Some((version, _)) if version != command.version => return Ok(Verdict::Undo(ChangeAccountOutcome::Stale)),
        Some((_, row)) => row,
    };
    if let Some(others) = other_admins {
        let before = admins::grant(command.organization, before)?;
        if takes_last_admin(&before, command.change.grant_after(&before), others) {
            return Ok(Verdict::Undo(ChangeAccountOutcome::LastAdmin));
        }
    }
    apply(connection, command).await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(ChangeAccountOutcome::Changed))
}

/// Judges the admin who orders a change. How many active admins there are beside the account to be changed.
async fn judge_admin(
    connection: &mut Connection,
    admin: &SessionPrincipal,
    target: AccountId,
    now: Timestamp,
) -> Result<Result<u64, Denial>, Failure> {
    if let Err(refusal) = hold_organization(connection, admin.organization).await? {
        return Ok(Err(refusal));
    }
    let others = admins::take(connection, admin, target).await?;
    Ok(judge_and_hold_holder(connection, admin, now).await?.map(|()| others))
}

async fn apply(connection: &mut Connection, command: &ChangeAccount) -> Result<(), Failure> {
    let ChangeAccount { organization, account, .. } = *command;
    if !matches!(command.change, AccountChange::Unlock) {
        diesel::delete(rows_of!(command, sessions)).execute(connection).await?;
        pending_seed::clear(connection, organization, account).await?;
    }
    match &command.change {
        AccountChange::Grant { grant, digest } => set_grant(connection, command, grant, digest).await?,
        AccountChange::Password(password) => set_password(connection, command, password).await?,
        AccountChange::Passcode { seed, recovery_codes } => {
            set_passcode(connection, command, seed, recovery_codes).await?;
        }
        AccountChange::Unlock => unlock(connection, command).await?,
        AccountChange::Delete => return delete(connection, command).await,
    }
    if let Some(notice) = command.change.notice() {
        notices::leave(connection, organization, account, notice, command.now).await?;
    }
    diesel::update(row_of!(command)).set(accounts::version.eq(command.version + 1)).execute(connection).await?;
    Ok(())
}

async fn set_grant(
    connection: &mut Connection,
    command: &ChangeAccount,
    grant: &AccountGrant,
    digest: &Digest,
) -> Result<(), Failure> {
    diesel::update(row_of!(command))
        .set((
            accounts::email.eq(grant.email.as_str()),
            accounts::role.eq(grant.role.as_str()),
            accounts::state.eq(grant.state.as_str()),
            accounts::grant_digest.eq(digest.as_bytes().as_slice()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn set_password(
    connection: &mut Connection,
    command: &ChangeAccount,
    password: &SealedPassword,
) -> Result<(), Failure> {
    diesel::update(row_of!(command))
        .set((
            accounts::password.eq(password.0.as_bytes()),
            accounts::password_version.eq(accounts::password_version + 1),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn set_passcode(
    connection: &mut Connection,
    command: &ChangeAccount,
    seed: &SealedSeed,
    codes: &[Digest],
) -> Result<(), Failure> {
    diesel::update(row_of!(command))
        .set((
            accounts::seed_id.eq(seed.id.text()),
            accounts::seed.eq(seed.blob.as_bytes()),
            accounts::passcode_enrolled_at.eq(command.now.as_millis()),
        ))
        .execute(connection)
        .await?;
    diesel::update(rows_of!(command, account_logins))
        .set((account_logins::last_step.eq(NO_STEP.0), account_logins::wrong_passcodes.eq(0)))
        .execute(connection)
        .await?;
    replace_recovery_codes(connection, command.organization, command.account, codes).await
}

async fn unlock(connection: &mut Connection, command: &ChangeAccount) -> Result<(), Failure> {
    let AttemptClass { attempts, latest } = AttemptClass::default();
    diesel::update(rows_of!(command, attempt_classes))
        .set((
            attempt_classes::attempts.eq(i64::from(attempts)),
            attempt_classes::latest.eq(latest.map(|latest| latest.as_millis())),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

async fn delete(connection: &mut Connection, command: &ChangeAccount) -> Result<(), Failure> {
    let address = row_of!(command).select(accounts::address);
    diesel::delete(directory::table.filter(directory::address.eq_any(address))).execute(connection).await?;
    diesel::delete(rows_of!(command, account_notices)).execute(connection).await?;
    diesel::delete(rows_of!(command, recovery_codes)).execute(connection).await?;
    diesel::delete(rows_of!(command, attempt_classes)).execute(connection).await?;
    diesel::delete(rows_of!(command, account_logins)).execute(connection).await?;
    diesel::delete(rows_of!(command, idempotency_keys)).execute(connection).await?;
    diesel::delete(row_of!(command)).execute(connection).await?;
    Ok(())
}
