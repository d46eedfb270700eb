//! Moving credentials from one organization key to another, and destroying keys that no row names.

use super::{EventStore, Inspection, InstanceKeyRotation, KeyRepository, OrganizationRepository, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::sealed::{SealedCredential, SealedMetadata};
use async_trait::async_trait;

/// What an organization key seals of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SealedPart {
    /// Wrapped data key and information of the current version.
    Current,
    /// The same of the staged and previous versions.
    Other,
    /// Labels, description and declared expiries.
    Metadata,
}

impl SealedPart {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Current, Self::Other, Self::Metadata];
}

/// Where a part is: the credential, and the version or, of metadata, the revision that it was sealed for.
pub type SealedPlace = (CredentialId, i64);

/// Asks for parts that one key seals, ordered by their place.
#[derive(Clone, Copy, Debug)]
pub struct FindSealed {
    /// The organization.
    pub organization: OrganizationId,
    /// The key.
    pub key: KeyId,
    /// Which part.
    pub part: SealedPart,
    /// Only those after this place.
    pub after: Option<SealedPlace>,
    /// How many of these to leave out.
    pub skip: usize,
    /// Maximum number of results.
    pub limit: usize,
}

/// A part and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRow {
    /// The credential.
    pub credential: CredentialId,
    /// The version; of metadata, the revision that it was sealed for.
    pub version: i64,
    /// The part.
    pub content: SealedContent,
}

/// A part, as its key sealed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedContent {
    /// A version. Its data is sealed under its data key, which stays the same.
    Version(SealedCredential),
    /// Metadata.
    Metadata(SealedMetadata),
}

impl SealedRow {
    /// Where it is.
    pub const fn place(&self) -> SealedPlace {
        (self.credential, self.version)
    }

    /// The key that sealed it.
    pub const fn key(&self) -> KeyId {
        match &self.content {
            SealedContent::Version(sealed) => sealed.key,
            SealedContent::Metadata(sealed) => sealed.key,
        }
    }
}

/// Stores parts as another key has sealed them.
#[derive(Clone, Debug)]
pub struct MoveSealed {
    /// The organization.
    pub organization: OrganizationId,
    /// The key that rows must still name.
    pub from: KeyId,
    /// The key of `rows`; it must be active.
    pub to: KeyId,
    /// Which part.
    pub part: SealedPart,
    /// The parts, all of this kind, ordered by their place.
    pub rows: Vec<SealedRow>,
}

/// Destroys a key that only opens.
#[derive(Clone, Debug)]
pub struct DestroyOrganizationKey {
    /// The organization.
    pub organization: OrganizationId,
    /// The key.
    pub key: KeyId,
    /// Audit record of the change.
    pub audit: SealedAuditRecord,
}

/// What became of a key that was to be destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDestruction {
    /// It is gone.
    Destroyed,
    /// Rows still name it.
    InUse,
    /// It is active, or not one of the organization.
    NotRetiring,
}

/// Number of parts that a key may seal.
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

/// What moves an organization's credentials from one of its keys to another.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait KeyRotation: Send + Sync {
    /// Parts that a key seals.
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedRow>, StoreError>;

    /// How many parts a key seals.
    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<SealedCount, StoreError>;

    /// Stores parts that were sealed again, and gives how many: a row that was moved, replaced or deleted meanwhile is left
    /// as it is. Revisions and times stay. `None`: the new key is not active, nothing was changed.
    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError>;

    /// Destroys a key, unless a row names it. Counted after its row was locked, so no save can come between.
    async fn destroy_organization_key(&self, command: DestroyOrganizationKey) -> Result<KeyDestruction, StoreError>;
}

/// What the rotation of keys needs of a store.
pub trait RotationStore:
    OrganizationRepository + KeyRepository + KeyRotation + InstanceKeyRotation + Inspection + EventStore
{
}

impl<S> RotationStore for S where
    S: OrganizationRepository + KeyRepository + KeyRotation + InstanceKeyRotation + Inspection + EventStore + ?Sized
{
}
