//! One's own account.

use super::super::authorize::{judge_and_hold_holder, judge_and_take_account, judge_holder};
use super::super::backend::{Connection, RunQuery, Store};
use super::super::login::sessions;
use super::super::{Decided, Verdict, audit};
use super::notices;
use super::pending_seed::{self, PendingSeed};
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, organizations, recovery_codes};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _};
use vault_core::email::EmailAddress;
use vault_core::organization::OrganizationName;
use vault_core::passcode::may_be_confirmed;
use vault_core::port::{ConfirmPasscode, OwnAccount, OwnAccountRepository, StoreError};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::sealed::SealedSeed;
use vault_core::time::Timestamp;

#[async_trait]
impl OwnAccountRepository for Store {
    async fn own_account(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Result<OwnAccount, Denial>, StoreError> {
        self.read((principal, now), |connection, (principal, now)| Box::pin(show(connection, principal, *now))).await
    }

    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Result<Option<SealedSeed>, Denial>, StoreError> {
        self.write((principal, now), |connection, (principal, now)| Box::pin(reserve(connection, principal, *now)))
            .await
    }

    async fn confirm_passcode(&self, command: ConfirmPasscode) -> Result<Result<bool, Denial>, StoreError> {
        self.write(command, |connection, command| Box::pin(confirm(connection, command))).await
    }
}

async fn show(
    connection: &mut Connection,
    principal: &SessionPrincipal,
    now: Timestamp,
) -> Result<Result<OwnAccount, Denial>, Failure> {
    if let Err(refusal) = judge_holder(connection, principal, now).await? {
        return Ok(Err(refusal));
    }
    let SessionPrincipal { organization, account, .. } = principal;
    type Row = (Read<EmailAddress>, Read<OrganizationName>, i64, Option<i64>);
    let (email, name, created_at, passcode_enrolled_at): Row = accounts::table
        .inner_join(organizations::table.on(organizations::id.eq(accounts::organization_id)))
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .select((accounts::email, organizations::name, accounts::created_at, accounts::passcode_enrolled_at))
        .get_result(connection)
        .await?;
    let recovery_codes_left: i64 = recovery_codes::table
        .filter(recovery_codes::organization_id.eq(organization.text()))
        .filter(recovery_codes::account_id.eq(account.text()))
        .count()
        .get_result(connection)
        .await?;
    Ok(Ok(OwnAccount {
        email: email.sound("accounts", account, "email")?,
        organization: name.sound("organizations", organization, "name")?,
        passcode_enrolled_at: Timestamp::from_millis(passcode_enrolled_at.unwrap_or(created_at)),
        recovery_codes_left: u32::try_from(recovery_codes_left).unwrap_or(u32::MAX),
        notices: notices::of(connection, *organization, *account).await?,
    }))
}

async fn reserve(
    connection: &mut Connection,
    principal: &SessionPrincipal,
    now: Timestamp,
) -> Decided<Result<Option<SealedSeed>, Denial>> {
    if let Err(refusal) = judge_and_hold_holder(connection, principal, now).await? {
        return Ok(Verdict::Undo(Err(refusal)));
    }
    let SessionPrincipal { organization, account, .. } = *principal;
    let pending = pending_seed::hold(connection, organization, account).await?;
    let open = |pending: &PendingSeed| may_be_confirmed(pending.expires_at, pending.tried, now);
    let Some(pending) = pending.filter(open) else { return Ok(Verdict::Undo(Ok(None))) };
    pending_seed::count(connection, organization, account).await?;
    Ok(Verdict::Recorded(Ok(Some(pending.seed))))
}

async fn confirm(connection: &mut Connection, command: &ConfirmPasscode) -> Decided<Result<bool, Denial>> {
    let ConfirmPasscode { principal, seed, step, now, audit: entry } = command;
    if let Err(refusal) = judge_and_take_account(connection, principal, *now).await? {
        return Ok(Verdict::Undo(Err(refusal)));
    }
    let SessionPrincipal { organization, account, .. } = *principal;
    let pending = pending_seed::hold(connection, organization, account).await?;
    let waits = |pending: &PendingSeed| pending.seed.id == *seed && *now < pending.expires_at;
    let Some(PendingSeed { seed, .. }) = pending.filter(waits) else { return Ok(Verdict::Undo(Ok(false))) };
    diesel::update(
        accounts::table
            .filter(accounts::organization_id.eq(organization.text()))
            .filter(accounts::id.eq(account.text())),
    )
    .set((
        accounts::seed_id.eq(seed.id.text()),
        accounts::seed.eq(seed.blob.as_bytes()),
        accounts::passcode_enrolled_at.eq(now.as_millis()),
        accounts::version.eq(accounts::version + 1),
    ))
    .execute(connection)
    .await?;
    diesel::update(
        account_logins::table
            .filter(account_logins::organization_id.eq(organization.text()))
            .filter(account_logins::account_id.eq(account.text())),
    )
    .set((account_logins::last_step.eq(step.0), account_logins::wrong_passcodes.eq(0)))
    .execute(connection)
    .await?;
    pending_seed::clear(connection, organization, account).await?;
    sessions::end_others(connection, principal).await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(Ok(true)))
}
