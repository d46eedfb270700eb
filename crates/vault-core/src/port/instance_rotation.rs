//! Ports for the rotation of instance keys: the rows that depend on them, and the keys.

use super::{Reply, SealError, StoredRowKey};
use crate::id::{KeyId, OrganizationId};
use crate::keyring::KeyringEntry;
use crate::sealed::{Blob, InstanceRecord, OrganizationKeys};
use crate::time::Timestamp;
use async_trait::async_trait;
use uuid::Uuid;

/// A kind of row that depends on a key of the instance, in one of the [protected tables](super::ProtectedTable). The rotation
/// of the instance key also seals the keyring again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstancePart {
    /// Organizations: wrapped fingerprint keys.
    Organizations,
    /// Keys of organizations, wrapped.
    OrganizationKeys,
}

/// Key of a row: its organization and its own ID. Rows of organizations themselves have their own ID twice.
pub type InstanceRowKey = (OrganizationId, Uuid);

/// The fields of a row that depend on keys of the instance. Each field names its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceRow {
    /// The fingerprint key of an organization, with the keys to which its wrap is bound.
    Organization {
        /// ID of the organization.
        organization: OrganizationId,
        /// Its keys.
        keys: Box<OrganizationKeys>,
    },
    /// A key of an organization.
    OrganizationKey {
        /// ID of the organization.
        organization: OrganizationId,
        /// ID of the organization key.
        key: KeyId,
        /// The wrapped organization key.
        wrapped: Blob,
    },
}

impl InstanceRow {
    /// Returns the kind of the row.
    pub const fn part(&self) -> InstancePart {
        match self {
            Self::Organization { .. } => InstancePart::Organizations,
            Self::OrganizationKey { .. } => InstancePart::OrganizationKeys,
        }
    }

    /// Returns the key of the row.
    pub fn place(&self) -> InstanceRowKey {
        match self {
            Self::Organization { organization, .. } => (*organization, *organization.as_uuid()),
            Self::OrganizationKey { organization, key, .. } => (*organization, *key.as_uuid()),
        }
    }

    /// Returns the keys that the fields of the row name.
    pub fn keys(&self) -> Vec<KeyId> {
        let wrapped = match self {
            Self::Organization { keys, .. } => &keys.fingerprint_wrapped,
            Self::OrganizationKey { wrapped, .. } => wrapped,
        };
        wrapped.key().into_iter().collect()
    }
}

/// A row that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRow {
    /// Name of the table.
    pub table: &'static str,
    /// ID of the row.
    pub id: String,
    /// The violation.
    pub reason: &'static str,
}

/// The keys of the instance, and rows of typed tables that depend on one.
pub trait InstanceRows: Send + Sync {
    /// Reads the row keys of a part in their order, whatever key the rows name.
    fn instance_places(
        &self,
        part: InstancePart,
        after: Option<StoredRowKey>,
        limit: usize,
    ) -> Reply<'_, Vec<StoredRowKey>>;

    /// Reads a row, if it exists.
    fn instance_row(
        &self,
        part: InstancePart,
        place: InstanceRowKey,
    ) -> Reply<'_, Option<Result<InstanceRow, UnreadableRow>>>;

    /// Reads the row of the instance and locks it until the transaction ends.
    fn lock_instance(&self) -> Reply<'_, Option<InstanceRecord>>;

    /// Stores the keys of the instance, whose row is locked.
    fn set_instance(&self, instance: &InstanceRecord) -> Reply<'_, ()>;

    /// Returns whether a row [requires](Self::count_under) a retiring key. Reads one snapshot, so it misses no row that moves
    /// from one table to another.
    fn requires(&self, term: KeyringEntry) -> Reply<'_, bool>;

    /// Returns the number of rows that require a retiring key:
    /// - Instance key: rows that depend on it.
    /// - Audit key: entries, checkpoints and the delivery position that name it.
    /// - Token key: sessions that started before it retired, or within [`KeyringEntry::DRAINED_SECONDS`] after.
    /// - Lookup key: deliveries of events and idempotency keys from before that time, which are deleted gradually.
    ///   Other rows with digests of the key are not counted, but [rekeyed](crate::usecase::LookUpMoves) before it is
    ///   destroyed.
    fn count_under(&self, term: KeyringEntry) -> Reply<'_, i64>;

    /// Replaces the fields that depend on the instance key, and preserves version and times. Returns `false` if the row
    /// has changed since it was read.
    fn reseal_row(&self, before: &InstanceRow, after: &InstanceRow) -> Reply<'_, bool>;
}

/// Creates instance keys, and the keyring documents that list them.
#[async_trait]
pub trait InstanceRewrapper: Send + Sync {
    /// Returns the keys that the keyring of `current` lists.
    ///
    /// # Errors
    /// The keyring document cannot be decrypted.
    fn terms(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError>;

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
