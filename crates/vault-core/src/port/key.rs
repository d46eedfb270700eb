//! Where wrapped keys lie.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::id::{KeyId, OrganizationId};
use crate::sealed::{
    Blob, InstanceKeyRecord, InstanceRecord, OrganizationKeyRecord, OrganizationKeys, RetiringInstanceKey,
};
use async_trait::async_trait;

/// Makes a deployment's keys, once.
#[derive(Clone, Debug)]
pub struct CreateInstance {
    /// The root of its keys.
    pub instance: InstanceRecord,
    /// Its instance-wide keys.
    pub keys: Vec<InstanceKeyRecord>,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Puts another root key in the place of the one that wraps the instance key.
#[derive(Clone, Debug)]
pub struct ReplaceRootKey {
    /// The instance as read. The stored row must still have the same root key, instance key and wrap.
    pub current: InstanceRecord,
    /// The new root key.
    pub root_key: KeyId,
    /// The same instance key, wrapped under the new root key.
    pub wrapped: Blob,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Takes the next block of an organization key's uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeKeyUses {
    /// The organization.
    pub organization: OrganizationId,
    /// The key.
    pub key: KeyId,
    /// Uses reserved before this block; the block begins here.
    pub from: i64,
    /// How many to take.
    pub block: i64,
}

/// Puts a new active key in the place of another, which then only opens.
#[derive(Clone, Debug)]
pub struct ReplaceOrganizationKey {
    /// The key that must still be active.
    pub current: KeyId,
    /// Its successor.
    pub next: OrganizationKeyRecord,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Wrapped keys. None of them can be read without the root key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait KeyRepository: Send + Sync {
    /// The deployment's root record, if it has been made.
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError>;

    /// Makes the deployment. `false`: there already is one, nothing was changed.
    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError>;

    /// The instance keys that were replaced and are not destroyed yet, oldest first.
    async fn retiring_instance_keys(&self) -> Result<Vec<RetiringInstanceKey>, StoreError>;

    /// The instance-wide keys, oldest first.
    async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError>;

    /// Replaces the root key. `false`: the row is not as it was read any more, nothing was changed.
    async fn replace_root_key(&self, command: ReplaceRootKey) -> Result<bool, StoreError>;

    /// An organization's keys, if the organization exists.
    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError>;

    /// Takes a block of uses. `false`: somebody else took one since, or the key is no longer active; read again.
    async fn take_key_uses(&self, command: TakeKeyUses) -> Result<bool, StoreError>;

    /// Replaces the active key. `false`: it was no longer active, nothing was changed.
    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError>;
}
