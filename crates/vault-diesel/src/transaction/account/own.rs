//! The principal's own account, and TOTP secrets that are confirmed.

use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock_account, authorize_and_lock_session, authorize_session};
use super::super::instance_key::require_active;
use super::super::{Read, Transaction};
use super::pending_seed::{self, TriedSeed};
use super::recovery_codes::recovery_codes_of;
use super::row::{SignedRow, TABLE, account_of, sign};
use super::{change, notices};
use crate::db::Tx;
use crate::failure::Failure;
use crate::rows::sessions;
use crate::schema::accounts;
use crate::stored::{CodeColumns, StoredId as _};
use diesel::{QueryDsl as _, SelectableHelper as _};
use vault_core::Command;
use vault_core::passcode::may_be_confirmed;
use vault_core::port::{ConfirmPasscode, OwnAccount, WaitingSeed};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::time::Timestamp;

/// The account of a session.
pub(crate) struct ShowOwnAccount {
    pub(crate) principal: SessionPrincipal,
    pub(crate) now: Timestamp,
}

impl Read for ShowOwnAccount {
    type Outcome = OwnAccount;

    async fn read(&self, tx: &Tx<'_>) -> Result<OwnAccount, Failure> {
        authorize_session(tx, &self.principal, self.now).await?;
        let SessionPrincipal { organization, account, .. } = self.principal;
        let row = account_of(organization.stored(), account.stored())
            .select((SignedRow::as_select(), accounts::passcode_enrolled_at));
        let (signed, enrolled_at): (SignedRow, i64) = tx.one(row).await?;
        let codes: i64 = tx.one(recovery_codes_of(organization.stored(), account.stored()).count()).await?;
        Ok(OwnAccount {
            signed: signed.decode()?,
            passcode_enrolled_at: Timestamp::from_millis(enrolled_at),
            recovery_codes_left: u32::try_from(codes).unwrap_or(u32::MAX),
            notices: notices::read(tx, organization, account).await?,
        })
    }
}

/// Counts an attempt to confirm a TOTP secret, before its passcode is verified.
pub(crate) struct ReserveConfirmation {
    pub(crate) principal: SessionPrincipal,
    pub(crate) now: Timestamp,
}

impl Transaction for ReserveConfirmation {
    /// The secret. `None` if there is none to confirm, or it was tried too often.
    type Outcome = Option<WaitingSeed>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<WaitingSeed>, Failure> {
        authorize_and_lock_session(tx, &self.principal, self.now).await?;
        let SessionPrincipal { organization, account, .. } = self.principal;
        let pending = pending_seed::lock(tx, organization, account).await?;
        let is_open = |seed: &TriedSeed| may_be_confirmed(seed.pending.expires_at, seed.tried, self.now);
        let Some(TriedSeed { pending, .. }) = pending.filter(is_open) else { return Ok(None) };
        let row = account_of(organization.stored(), account.stored())
            .select((SignedRow::as_select(), (accounts::grant_digest, accounts::grant_key_id)));
        let (signed, digest): (SignedRow, CodeColumns) = tx.one(row).await?;
        let waiting =
            WaitingSeed { pending, signed: signed.decode()?, digest: digest.decode(TABLE, &account, "grant_digest")? };
        pending_seed::count(tx, organization, account).await?;
        audit.commit_without_entry();
        Ok(Some(waiting))
    }
}

impl Transaction for Command<ConfirmPasscode> {
    /// Whether the secret was confirmed: it is still the one whose passcode was verified, and the account is unchanged.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { principal, now, payload, .. } = self;
        let Principal::Session(session) = principal else { return Err(Denial::InsufficientRole.into()) };
        let (organization, account) = (session.organization, session.account);
        let grant = &payload.after.grant;
        if organization != grant.organization || account != grant.account {
            return Err(Denial::AccountChanged.into());
        }
        authorize_and_lock_account(tx, session, *now).await?;
        require_active(tx, [payload.digest.key]).await?;
        let row = account_of(organization.stored(), account.stored()).select(accounts::version);
        let version: i64 = tx.one(row).await?;
        let pending = pending_seed::lock(tx, organization, account).await?;
        let waits =
            |TriedSeed { pending, .. }: &TriedSeed| pending.seed.id == payload.after.seed && *now < pending.expires_at;
        let pending = pending.filter(waits).filter(|_| version == payload.version);
        let Some(TriedSeed { pending, .. }) = pending else { return Ok(false) };
        change::set_seed(tx, grant, &pending.seed, payload.step, *now).await?;
        sign(tx, &payload.after, &payload.digest).await?;
        pending_seed::delete(tx, organization, account).await?;
        sessions::end_others(tx, session).await?;
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
}
