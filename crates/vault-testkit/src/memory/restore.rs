//! The restore epoch, and the revocations after a restore.

use super::MemoryStore;
use async_trait::async_trait;
use std::mem::take;
use vault_core::Command;
use vault_core::entity::Kind;
use vault_core::port::{FinishRestore, RestoreRepository, Settled, StoreError};
use vault_core::principal::{Denial, Principal};

#[async_trait]
impl RestoreRepository for MemoryStore {
    async fn restore_epoch(&self) -> Result<u64, StoreError> {
        self.decide(|state| state.restore_epoch)
    }

    async fn finish_restore(&self, command: Command<FinishRestore>) -> Result<Option<Settled>, StoreError> {
        if command.principal != Principal::Operator {
            return Err(Denial::InsufficientRole.into());
        }
        let payload = command.payload;
        self.decide(|state| {
            if payload.epoch <= state.restore_epoch {
                return None;
            }
            state.restore_epoch = payload.epoch;
            let mut settled = Settled {
                sessions: take(&mut state.sessions).len() as u64,
                activations: take(&mut state.activations).len() as u64,
                ..Settled::default()
            };
            for account in state.accounts.values_mut() {
                settled.recovery_codes += take(&mut account.recovery_codes).len() as u64;
                account.last_step = account.last_step.max(payload.step);
            }
            let unconfirmed = [Kind::PendingSeed.as_str(), Kind::EnrolmentDraft.as_str()];
            state.entities.retain(|(_, kind, _), _| !unconfirmed.contains(kind));
            if payload.ends_invitations {
                let keys = state.entities.values().map(|row| row.key).filter(|key| key.kind == Kind::Invitation);
                for key in keys.collect::<Vec<_>>() {
                    settled.invitations += u64::from(state.remove_entity(key));
                }
            }
            state.audit.push(command.audit);
            Some(settled)
        })
    }
}
