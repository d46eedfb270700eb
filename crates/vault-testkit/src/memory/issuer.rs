//! Issuers of identity tokens.

use super::{Decided, MemoryStore};
use async_trait::async_trait;
use vault_core::id::IssuerId;
use vault_core::identity::{IssuerName, StoredIssuer};
use vault_core::port::{IssuerRepository, StoreError};
use vault_core::{Command, Refusal};

#[async_trait]
impl IssuerRepository for MemoryStore {
    async fn add_issuer(&self, command: Command<StoredIssuer>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, _, _, payload| {
            if state.issuers.contains_key(&payload.issuer.name) {
                return Decided::Refused(Err(Refusal::IssuerExists));
            }
            state.issuers.insert(payload.issuer.name.clone(), payload);
            Decided::Done(Ok(()))
        })??)
    }

    async fn list_issuers(&self) -> Result<Vec<StoredIssuer>, StoreError> {
        self.decide(|state| state.issuers.values().cloned().collect())
    }

    async fn find_issuers(&self, names: Vec<IssuerName>) -> Result<Vec<StoredIssuer>, StoreError> {
        self.decide(|state| names.iter().filter_map(|name| state.issuers.get(name).cloned()).collect())
    }

    async fn remove_issuer(&self, command: Command<IssuerId>) -> Result<bool, StoreError> {
        Ok(self.carry_out(command, |state, _, _, payload| {
            let before = state.issuers.len();
            state.issuers.retain(|_, stored| stored.issuer.id != payload);
            if state.issuers.len() < before { Decided::Done(true) } else { Decided::Refused(false) }
        })?)
    }

    async fn record_keys(&self, seen: StoredIssuer, next: StoredIssuer) -> Result<bool, StoreError> {
        self.decide(|state| {
            let row = state.issuers.get_mut(&seen.issuer.name).filter(|row| **row == seen);
            row.map(|row| *row = next).is_some()
        })
    }
}
