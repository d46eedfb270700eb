//! Wrapped keys of the instance.

use super::MemoryStore;
use async_trait::async_trait;
use vault_core::port::{CreateInstance, KeyRepository, StoreError};
use vault_core::sealed::InstanceRecord;

#[async_trait]
impl KeyRepository for MemoryStore {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.decide(|state| state.instance.clone())
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.decide(|state| {
            if state.instance.is_some() {
                return false;
            }
            state.instance = Some(command.instance);
            state.audit.push(command.audit);
            true
        })
    }
}
