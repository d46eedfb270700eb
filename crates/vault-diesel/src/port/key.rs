//! The port of the keys of the instance.

use super::{Database, DieselStore};
use crate::transaction::organization::keys::ReadInstance;
use async_trait::async_trait;
use vault_core::port::{CreateInstance, KeyRepository, StoreError};
use vault_core::sealed::InstanceRecord;

#[async_trait]
impl<D: Database> KeyRepository for DieselStore<D> {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.answer(None, ReadInstance).await
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.run(command).await
    }
}
