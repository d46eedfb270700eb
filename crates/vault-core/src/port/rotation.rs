//! Port for the rotation of organization keys: moves credentials from one key to another and destroys unused keys.

use super::{AuditTrail, Inspection, InstanceKeyRotation, KeyRepository, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::{CredentialId, KeyId, OrganizationId, VersionId};
use crate::sealed::{ReboundKeys, SealedCredential, SealedMetadata};
use async_trait::async_trait;

/// A part of a credential that an organization key seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealedPart {
    /// Wrapped data key and information of the current version.
    Current,
    /// Wrapped data key and information of the staged and previous versions.
    Other,
    /// Labels, description and declared expiries.
    Metadata,
}

impl SealedPart {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Current, Self::Other, Self::Metadata];
}

/// Row key of a part: the credential with the version or, for metadata, the revision to which it is bound.
pub type SealedRowKey = (CredentialId, i64);

/// Query for parts that a key seals, ordered by row key.
#[derive(Clone, Copy, Debug)]
pub struct FindSealed {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the key.
    pub key: KeyId,
    /// Kind of parts.
    pub part: SealedPart,
    /// Returns only parts after this row key.
    pub after: Option<SealedRowKey>,
    /// Number of these parts to skip.
    pub skip: usize,
    /// Maximum number of results.
    pub limit: usize,
}

/// A sealed part with its row key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRow {
    /// ID of the credential.
    pub credential: CredentialId,
    /// Version or, for metadata, the revision to which it is bound.
    pub version: i64,
    /// ID of the version. `None` for metadata, and for a version that its credential's row does not list.
    pub id: Option<VersionId>,
    /// The sealed part.
    pub content: SealedContent,
}

/// A part in sealed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedContent {
    /// A version. Its data is sealed with its data key, which does not change.
    Version(SealedCredential),
    /// Metadata.
    Metadata(SealedMetadata),
}

impl SealedRow {
    /// Returns its row key.
    pub const fn place(&self) -> SealedRowKey {
        (self.credential, self.version)
    }

    /// Returns the key that sealed it.
    pub const fn key(&self) -> KeyId {
        match &self.content {
            SealedContent::Version(sealed) => sealed.key,
            SealedContent::Metadata(sealed) => sealed.key,
        }
    }
}

/// Stores parts that were resealed with another key.
#[derive(Clone, Debug)]
pub struct MoveSealed {
    /// The organization.
    pub organization: OrganizationId,
    /// Key that the stored rows must still name.
    pub from: KeyId,
    /// Key of `rows`, which must be active.
    pub to: KeyId,
    /// Kind of parts.
    pub part: SealedPart,
    /// Parts of this kind, ordered by row key.
    pub rows: Vec<SealedRow>,
}

/// Destroys a key that only decrypts.
#[derive(Clone, Debug)]
pub struct DestroyOrganizationKey {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the key.
    pub key: KeyId,
    /// The wrap of the fingerprint key, bound to the remaining keys.
    pub fingerprint: ReboundKeys,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// Result of the request to destroy a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDestruction {
    /// The key was destroyed.
    Destroyed,
    /// Rows still name it.
    InUse,
    /// The key is active, or does not belong to the organization, or the organization's keys have changed since they
    /// were read.
    NotRetiring,
}

/// Numbers of parts that a key seals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedCount {
    /// Current versions.
    pub current: i64,
    /// Staged and previous versions.
    pub other: i64,
    /// Credentials with metadata.
    pub metadata: i64,
}

impl SealedCount {
    /// Returns the sum of all counts.
    pub const fn total(self) -> i64 {
        self.current.saturating_add(self.other).saturating_add(self.metadata)
    }
}

/// Port that moves an organization's credentials from one of its keys to another.
#[async_trait]
pub trait KeyRotation: Send + Sync {
    /// Returns parts that a key seals.
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedRow>, StoreError>;

    /// Returns the numbers of parts that a key seals.
    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<SealedCount, StoreError>;

    /// Stores resealed parts and returns their number. Skips rows that were moved, replaced or deleted in the meantime,
    /// and preserves revisions and times. Returns `None` and changes nothing if the new key is not active.
    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError>;

    /// Destroys a key unless a row names it. Rows are counted after the key's row is locked, so no save can use it
    /// concurrently.
    async fn destroy_organization_key(&self, command: DestroyOrganizationKey) -> Result<KeyDestruction, StoreError>;
}

/// Ports that the rotation of keys requires of a store.
pub trait RotationStore: KeyRepository + KeyRotation + InstanceKeyRotation + Inspection + AuditTrail {}

impl<S> RotationStore for S where S: KeyRepository + KeyRotation + InstanceKeyRotation + Inspection + AuditTrail + ?Sized
{}
