//! Port for the rotation of organization keys: moves credentials from one key to another and destroys unused keys.

use super::{AuditTrail, Inspection, KeyRepository, StoreError};
use crate::audit::SealedAuditRecord;
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::sealed::{Blob, ReboundKeys, SealedData};
use async_trait::async_trait;

/// Query for credentials that a key seals, ordered by ID.
#[derive(Clone, Copy, Debug)]
pub struct FindSealed {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the key.
    pub key: KeyId,
    /// Returns only credentials after this one.
    pub after: Option<CredentialId>,
    /// Number of these credentials to skip.
    pub skip: usize,
    /// Maximum number of results.
    pub limit: usize,
}

/// The sealed parts of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision to which the card is bound.
    pub revision: i64,
    /// The sealed card.
    pub card: Blob,
    /// Sealed data of each version, by number. It is sealed with its data key, which does not change.
    pub data: Vec<(i64, SealedData)>,
}

/// Stores credentials that were resealed with another key.
#[derive(Clone, Debug)]
pub struct MoveSealed {
    /// The organization.
    pub organization: OrganizationId,
    /// Key that the stored rows must still name.
    pub from: KeyId,
    /// Key of `credentials`, which must be active.
    pub to: KeyId,
    /// Credentials ordered by ID.
    pub credentials: Vec<SealedCredential>,
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

/// Port that moves an organization's credentials from one of its keys to another.
#[async_trait]
pub trait KeyRotation: Send + Sync {
    /// Returns credentials that a key seals: those that were saved under it, or moved to it, and not moved to another one since.
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedCredential>, StoreError>;

    /// Returns the number of credentials that a key seals.
    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<i64, StoreError>;

    /// Stores resealed credentials and returns their number. Skips those that were moved, replaced or deleted in the meantime,
    /// and preserves revisions and times. Returns `None` and changes nothing if the new key is not active.
    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError>;

    /// Destroys a key unless a row names it. Rows are counted after the key's row is locked, so no save can use it
    /// concurrently.
    async fn destroy_organization_key(&self, command: DestroyOrganizationKey) -> Result<KeyDestruction, StoreError>;
}

/// Ports that the rotation of keys requires of a store.
pub trait RotationStore: KeyRepository + KeyRotation + Inspection + AuditTrail {}

impl<S> RotationStore for S where S: KeyRepository + KeyRotation + Inspection + AuditTrail + ?Sized {}
