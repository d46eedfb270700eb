//! Changes that users make to their own accounts.

use super::row::TriedSeed;
use super::{Decided, MemoryStore};
use async_trait::async_trait;
use vault_core::Command;
use vault_core::passcode::may_be_confirmed;
use vault_core::port::{ConfirmPasscode, OwnAccount, OwnAccountRepository, StoreError, WaitingSeed};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::time::Timestamp;

#[async_trait]
impl OwnAccountRepository for MemoryStore {
    async fn own_account(&self, principal: SessionPrincipal, now: Timestamp) -> Result<OwnAccount, StoreError> {
        self.decide(|state| {
            state.check_session(&principal, now)?;
            let row = state.accounts.get(&principal.account).ok_or(Denial::AccountChanged)?;
            Ok(OwnAccount {
                signed: row.signed.clone(),
                passcode_enrolled_at: row.passcode_enrolled_at,
                recovery_codes_left: u32::try_from(row.recovery_codes.len()).unwrap_or(u32::MAX),
                notices: row.notices.clone(),
            })
        })?
        .map_err(StoreError::Denied)
    }

    async fn reserve_confirmation(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Option<WaitingSeed>, StoreError> {
        self.decide(|state| {
            state.check_session(&principal, now)?;
            let row = state.accounts.get_mut(&principal.account).ok_or(Denial::AccountChanged)?;
            let open = |seed: &&mut TriedSeed| may_be_confirmed(seed.pending.expires_at, seed.tried, now);
            let Some(seed) = row.pending.as_mut().filter(open) else { return Ok(None) };
            seed.tried += 1;
            let pending = seed.pending.clone();
            Ok(Some(WaitingSeed { pending, signed: row.signed.clone(), digest: row.digest }))
        })?
        .map_err(StoreError::Denied)
    }

    async fn confirm_passcode(&self, command: Command<ConfirmPasscode>) -> Result<bool, StoreError> {
        let Principal::Session(principal) = command.principal.clone() else {
            return Err(StoreError::Denied(Denial::InsufficientRole));
        };
        if principal.account != command.payload.after.grant.account {
            return Err(StoreError::Denied(Denial::AccountChanged));
        }
        self.carry_out(command, |state, _, now, payload| {
            let ConfirmPasscode { version, after, digest, step } = payload;
            if let Err(refusal) = state.require_active([digest.key]) {
                return Decided::Refused(Err(StoreError::Refused(refusal)));
            }
            let Some(row) = state.accounts.get_mut(&principal.account) else { return Decided::Refused(Ok(false)) };
            let waits =
                |TriedSeed { pending, .. }: &mut TriedSeed| pending.seed.id == after.seed && now < pending.expires_at;
            if row.signed.version != version {
                return Decided::Refused(Ok(false));
            }
            let Some(pending) = row.pending.take_if(waits) else { return Decided::Refused(Ok(false)) };
            row.seed = pending.pending.seed;
            row.signed = after;
            row.digest = digest;
            row.last_step = step;
            row.wrong_passcodes = Default::default();
            row.passcode_enrolled_at = now;
            state.end_other_sessions_of(principal.account, principal.session);
            Decided::Done(Ok(true))
        })?
    }
}
