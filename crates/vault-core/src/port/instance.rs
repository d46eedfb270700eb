//! Ports for the row of the instance, and for the rotation of its keys.

use super::{Reply, SealError, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::{KeyId, OrganizationId};
use crate::keyring::KeyringEntry;
use crate::sealed::{Blob, InstanceRecord};
use crate::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

/// Key of a row: its organization and its own ID. Rows of organizations themselves have their own ID twice.
pub type RowKey = (OrganizationId, Uuid);

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

/// The row of the instance, in operations.
pub trait InstanceRows: Send + Sync {
    /// Reads the row of the instance and locks it until the transaction ends.
    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>>;

    /// Stores the keys of the instance, whose row is locked.
    fn set_instance(&self, instance: &InstanceRecord) -> Reply<'_, ()>;

    /// Returns whether a row [requires](Self::count_under) a retiring key. Reads one snapshot, so it misses no row that moves
    /// from one table to another.
    fn requires(&self, entry: KeyringEntry) -> Reply<'_, bool>;

    /// Returns the number of rows that require a retiring key:
    /// - Instance key: rows that depend on it.
    /// - Audit key: entries, checkpoints and the delivery position that name it.
    /// - Token key: sessions that started before it retired, or within [`KeyringEntry::DRAINED_SECONDS`] after.
    /// - Lookup key: deliveries of events and idempotency keys from before that time, which are deleted gradually.
    ///   Other rows with digests of the key are not counted, but [rekeyed](crate::usecase::LookUpMoves) before it is
    ///   destroyed.
    fn count_under(&self, entry: KeyringEntry) -> Reply<'_, i64>;
}

/// Creates instance keys, and the keyring documents that list them.
#[async_trait]
pub trait InstanceRewrapper: Send + Sync {
    /// Returns the keys that the keyring of `current` lists.
    ///
    /// # Errors
    /// The keyring document cannot be decrypted.
    fn entries(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError>;

    /// Creates a successor for the instance key of `current` at time `now`, and new keys for lookups, tokens and the audit
    /// log. The keyring of the returned record contains them, and the old ones as retiring keys.
    ///
    /// # Errors
    /// The keyring document cannot be decrypted, the root key is unavailable, or the operating system returns no randomness.
    async fn next_instance_key(&self, current: &InstanceRecord, now: Timestamp) -> Result<InstanceRecord, SealError>;

    /// Returns the next keyring document, without the retiring key `key`.
    ///
    /// # Errors
    /// The document cannot be decrypted or does not list the key as retiring, or the operating system returns no randomness.
    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError>;
}
