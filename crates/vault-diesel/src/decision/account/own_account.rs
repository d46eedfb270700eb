//! One's own account.

use super::super::backend::{Connection, RunQuery, Store};
use super::super::login::sessions;
use super::super::organization::keys::require_active;
use super::super::{Decided, Decision, Verdict, decide};
use super::notices;
use super::pending_seed::{self, PendingSeed};
use super::row::{SignedRow, row_of, sign, signed_columns};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, organizations, recovery_codes};
use crate::stored::{CodeColumns, Column, StoredId as _};
use crate::transaction::authorize::{authorize_and_lock_account, authorize_and_lock_session, authorize_session};
use crate::update::update;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, JoinOnDsl as _, QueryDsl as _};
use vault_core::Command;
use vault_core::organization::OrganizationName;
use vault_core::passcode::may_be_confirmed;
use vault_core::port::{ConfirmPasscode, OwnAccount, OwnAccountRepository, StoreError, WaitingSeed};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::time::Timestamp;

#[async_trait]
impl OwnAccountRepository for Store {
    async fn own_account(&self, principal: SessionPrincipal, now: Timestamp) -> Result<OwnAccount, StoreError> {
        self.read_for(Some(principal.organization), (principal, now), |connection, (principal, now)| {
            Box::pin(show(connection, principal, *now))
        })
        .await
    }

    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Option<WaitingSeed>, StoreError> {
        self.write((principal, now), |connection, (principal, now)| Box::pin(reserve(connection, principal, *now)))
            .await
    }

    async fn confirm_passcode(&self, command: Command<ConfirmPasscode>) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(decide(connection, command))).await
    }
}

async fn show(
    connection: &mut Connection,
    principal: &SessionPrincipal,
    now: Timestamp,
) -> Result<OwnAccount, Failure> {
    authorize_session(&connection.tx(), principal, now).await?;
    let SessionPrincipal { organization, account, .. } = principal;
    type Row = (SignedRow, Column<OrganizationName>, i64);
    let (signed, name, passcode_enrolled_at): Row = row_of!(principal)
        .inner_join(organizations::table.on(organizations::id.eq(accounts::organization_id)))
        .select((signed_columns!(), organizations::name, accounts::passcode_enrolled_at))
        .get_result(connection)
        .await?;
    let recovery_codes_left: i64 = recovery_codes::table
        .filter(recovery_codes::organization_id.eq(organization.stored()))
        .filter(recovery_codes::account_id.eq(account.stored()))
        .count()
        .get_result(connection)
        .await?;
    Ok(OwnAccount {
        signed: signed.decode()?,
        organization: name.decode("organizations", organization, "name")?,
        passcode_enrolled_at: Timestamp::from_millis(passcode_enrolled_at),
        recovery_codes_left: u32::try_from(recovery_codes_left).unwrap_or(u32::MAX),
        notices: notices::of(connection, *organization, *account).await?,
    })
}

async fn reserve(
    connection: &mut Connection,
    principal: &SessionPrincipal,
    now: Timestamp,
) -> Decided<Option<WaitingSeed>> {
    authorize_and_lock_session(&connection.tx(), principal, now).await?;
    let SessionPrincipal { organization, account, .. } = *principal;
    let pending = pending_seed::hold(connection, organization, account).await?;
    let open = |pending: &PendingSeed| may_be_confirmed(pending.expires_at, pending.tried, now);
    let Some(pending) = pending.filter(open) else { return Ok(Verdict::Refused(None)) };
    let (signed, digest): (SignedRow, CodeColumns) = row_of!(principal)
        .select((signed_columns!(), (accounts::grant_digest, accounts::grant_key_id)))
        .get_result(connection)
        .await?;
    let waiting = WaitingSeed {
        seed: pending.seed,
        signed: signed.decode()?,
        digest: digest.decode("accounts", &account, "grant_digest")?,
    };
    pending_seed::count(connection, organization, account).await?;
    Ok(Verdict::Recorded(Some(waiting)))
}

impl Decision for ConfirmPasscode {
    type Held = ();
    type Outcome = bool;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        let Principal::Session(session) = &command.principal else { return Err(Denial::InsufficientRole.into()) };
        let grant = &command.act.after.grant;
        if session.organization != grant.organization || session.account != grant.account {
            return Err(Denial::AccountChanged.into());
        }
        authorize_and_lock_account(&connection.tx(), session, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<bool> {
        let Command { principal, now, act, .. } = command;
        let Principal::Session(session) = principal else { return Ok(Verdict::Refused(false)) };
        let (organization, account) = (session.organization, session.account);
        require_active(connection, [act.digest.key]).await?;
        let version: i64 = row_of!(session).select(accounts::version).get_result(connection).await?;
        let pending = pending_seed::hold(connection, organization, account).await?;
        let waits = |pending: &PendingSeed| pending.seed.id == act.after.seed && *now < pending.expires_at;
        let pending = pending.filter(waits).filter(|_| version == act.version);
        let Some(PendingSeed { seed, .. }) = pending else { return Ok(Verdict::Refused(false)) };
        update(row_of!(session))
            .set((accounts::seed.eq(seed.blob.as_bytes()), accounts::passcode_enrolled_at.eq(now.as_millis())))
            .execute(connection)
            .await?;
        sign(connection, &act.after, &act.digest).await?;
        update(
            account_logins::table
                .filter(account_logins::organization_id.eq(organization.stored()))
                .filter(account_logins::account_id.eq(account.stored())),
        )
        .set((
            account_logins::last_step.eq(act.step.0),
            account_logins::wrong_passcodes.eq(0),
            account_logins::wrong_at.eq(None::<i64>),
        ))
        .execute(connection)
        .await?;
        pending_seed::clear(connection, organization, account).await?;
        sessions::end_others(connection, session).await?;
        Ok(Verdict::Done(true))
    }
}
