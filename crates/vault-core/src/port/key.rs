//! Port for wrapped keys.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::id::{KeyId, OrganizationId};
use crate::sealed::{InstanceRecord, OrganizationKeyRecord, OrganizationKeys, ReboundKeys};
use async_trait::async_trait;

/// Creates the keys of an instance, once.
#[derive(Clone, Debug)]
pub struct CreateInstance {
    /// The instance with its root.
    pub instance: InstanceRecord,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Reserves the next block of an organization key's uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReserveKeyUses {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the key.
    pub key: KeyId,
    /// Number of uses that were reserved before this block.
    pub from: i64,
    /// Number of uses to reserve.
    pub block: i64,
}

/// Replaces the active key with a new one. The old key can then only decrypt.
#[derive(Clone, Debug)]
pub struct ReplaceOrganizationKey {
    /// ID of the key that must still be active.
    pub current: KeyId,
    /// Its successor.
    pub next: OrganizationKeyRecord,
    /// The wrap of the fingerprint key, bound to the keys after the change.
    pub fingerprint: ReboundKeys,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Port for wrapped keys. None of them can be unwrapped without the root key.
#[async_trait]
pub trait KeyRepository: Send + Sync {
    /// Returns the instance, if it has been created.
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError>;

    /// Creates the instance. Returns `false` and changes nothing if it exists already.
    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError>;

    /// Returns the keys of an organization, if it exists.
    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError>;

    /// Reserves a block of uses. Returns `false` if another process reserved one since, or the key is no longer active.
    /// Read the keys again in that case.
    async fn reserve_key_uses(&self, command: ReserveKeyUses) -> Result<bool, StoreError>;

    /// Replaces the active key. Returns `false` and changes nothing if it was no longer active, or the keys of the
    /// organization have changed otherwise.
    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError>;
}
