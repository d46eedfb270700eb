//! Port for the row of the instance.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::sealed::InstanceRecord;
use async_trait::async_trait;

/// Creates the keys of an instance, once.
#[derive(Clone, Debug)]
pub struct CreateInstance {
    /// The instance with its root.
    pub instance: InstanceRecord,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Port for the row of the instance, which is read before its keys are open. None of them can be unwrapped without the root
/// key. Each method is one transaction.
#[async_trait]
pub trait KeyRepository: Send + Sync {
    /// Returns the instance, if it has been created.
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError>;

    /// Creates the instance. Returns `false` and changes nothing if it exists already.
    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError>;
}
