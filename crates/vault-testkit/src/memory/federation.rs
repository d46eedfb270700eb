//! Signing keys of federation tokens.

use super::{MemoryStore, State, lock};
use async_trait::async_trait;
use vault_core::Refusal;
use vault_core::federation::StoredFederationKey;
use vault_core::id::KeyId;
use vault_core::port::{ChangeFederationKeys, FederationKeyRepository, RecordPublication, StoreError};

#[async_trait]
impl FederationKeyRepository for MemoryStore {
    async fn federation_keys(&self) -> Result<Vec<Result<StoredFederationKey, String>>, StoreError> {
        self.decide(|state| state.federation_keys.values().cloned().map(Ok).collect())
    }

    async fn change_federation_keys(&self, command: ChangeFederationKeys) -> Result<bool, StoreError> {
        self.decide(|state| {
            let ChangeFederationKeys { added, changed, removed, keyring, audit } = command;
            if let Some(replaced) = &keyring {
                let is_read = state.instance.as_ref().is_some_and(|instance| instance.keyring == replaced.current);
                is_read.then_some(()).ok_or(Refusal::Contended)?;
            }
            let sealed = added.iter().filter_map(|row| row.private_key.key());
            state.require_active(added.iter().chain(&changed).map(|row| row.mac.key).chain(sealed))?;
            let expected = changed.iter().map(|row| (row.key.id, row.key.version - 1)).chain(removed.iter().copied());
            if !expected.into_iter().all(|(id, version)| state.has_federation_key(id, version)) {
                return Ok(false);
            }
            for row in added {
                state.federation_keys.insert(row.key.id, row);
            }
            for row in changed {
                if let Some(stored) = state.federation_keys.get_mut(&row.key.id) {
                    (stored.key, stored.mac) = (row.key, row.mac);
                }
            }
            for (id, _) in removed {
                state.federation_keys.remove(&id);
            }
            if let (Some(instance), Some(replaced)) = (&mut state.instance, keyring) {
                instance.keyring = replaced.next;
            }
            state.audit.extend(audit);
            Ok(true)
        })?
    }

    async fn record_publication(&self, checks: Vec<RecordPublication>) -> Result<bool, StoreError> {
        self.decide(|state| {
            let is_read = |check: &RecordPublication| {
                state.federation_keys.get(&check.key).is_some_and(|row| row.checked_at == check.seen)
            };
            if !checks.iter().all(is_read) {
                return false;
            }
            for RecordPublication { key, checked_at, failure, .. } in checks {
                if let Some(row) = state.federation_keys.get_mut(&key) {
                    (row.checked_at, row.failure) = (Some(checked_at), failure);
                }
            }
            true
        })
    }
}

impl State {
    fn has_federation_key(&self, id: KeyId, version: i64) -> bool {
        self.federation_keys.get(&id).is_some_and(|row| row.key.version == version)
    }
}

impl MemoryStore {
    /// Changes the rows of signing keys, as an attacker with write access to the database might.
    pub fn tamper_with_federation_keys(
        &self,
        change: impl FnOnce(&mut std::collections::BTreeMap<KeyId, StoredFederationKey>),
    ) {
        change(&mut lock(&self.inner).state.federation_keys);
    }
}
