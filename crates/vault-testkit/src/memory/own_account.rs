//! One's own account.

use super::MemoryStore;
use super::row::PendingSeed;
use async_trait::async_trait;
use vault_core::passcode::may_be_confirmed;
use vault_core::port::{ConfirmPasscode, OwnAccount, OwnAccountRepository, StoreError};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::sealed::SealedSeed;
use vault_core::time::Timestamp;

#[async_trait]
impl OwnAccountRepository for MemoryStore {
    async fn own_account(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Result<OwnAccount, Denial>, StoreError> {
        self.decide(|state| {
            state.judge_session(&principal, now)?;
            let organization = state.organizations.get(&principal.organization);
            let organization = organization.ok_or(Denial::OrganizationClosed)?.name.clone();
            let row = state.accounts.get(&principal.account).ok_or(Denial::AccountChanged)?;
            Ok(OwnAccount {
                email: row.grant.email.clone(),
                organization,
                passcode_enrolled_at: row.passcode_enrolled_at,
                recovery_codes_left: u32::try_from(row.recovery_codes.len()).unwrap_or(u32::MAX),
                notices: row.notices.clone(),
            })
        })
    }

    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Result<Option<SealedSeed>, Denial>, StoreError> {
        self.decide(|state| {
            state.judge_session(&principal, now)?;
            let row = state.accounts.get_mut(&principal.account).ok_or(Denial::AccountChanged)?;
            let open = |pending: &&mut PendingSeed| may_be_confirmed(pending.expires_at, pending.tried, now);
            let Some(pending) = row.pending.as_mut().filter(open) else { return Ok(None) };
            pending.tried += 1;
            Ok(Some(pending.seed.clone()))
        })
    }

    async fn confirm_passcode(&self, command: ConfirmPasscode) -> Result<Result<bool, Denial>, StoreError> {
        self.decide(|state| {
            let ConfirmPasscode { principal, seed, step, now, audit } = command;
            state.judge_session(&principal, now)?;
            let row = state.accounts.get_mut(&principal.account).ok_or(Denial::AccountChanged)?;
            let waits = |pending: &mut PendingSeed| pending.seed.id == seed && now < pending.expires_at;
            let Some(pending) = row.pending.take_if(waits) else { return Ok(false) };
            row.seed = pending.seed;
            row.last_step = step;
            row.wrong_passcodes = 0;
            row.passcode_enrolled_at = now;
            row.version += 1;
            state.end_other_sessions_of(principal.account, principal.session);
            state.audit.push(audit);
            Ok(true)
        })
    }
}
