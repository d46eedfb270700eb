//! The row of the instance, before its keys are open.

use super::{Database, DieselStore};
use crate::db::OpenTx as _;
use crate::rows::instance;
use crate::work::End;
use async_trait::async_trait;
use vault_core::port::{CreateInstance, KeyRepository, StoreError};
use vault_core::sealed::InstanceRecord;

#[async_trait]
impl<D: Database> KeyRepository for DieselStore<D> {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        let read = self.look((), |connection, ()| {
            Box::pin(async move { Ok((instance::read(&connection.tx()).await?, End::Unchanged)) })
        });
        read.await
    }

    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        let create = self.change(command, |connection, command| {
            Box::pin(async move {
                let created = instance::create(&connection.tx(), command).await?;
                Ok((created, if created { End::Commit } else { End::Unchanged }))
            })
        });
        create.await
    }
}
