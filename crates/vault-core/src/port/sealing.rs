//! Ports for encryption and decryption, separated so that a component that only seals data cannot decrypt it.
//!
//! They are synchronous and without I/O, so operations use them within their transaction. An organization's keys come, wrapped, from
//! its document, and only these ports unwrap them.

use super::{SealError, SealedCredential};
use crate::credential::{Card, CredentialData, CredentialType, Fingerprint, SecretBytes};
use crate::id::{CredentialId, OrganizationId, VersionId};
use crate::namespace::Namespace;
use crate::sealed::{Blob, OrganizationKeys, SealedData, WrappedKey};
use crate::time::Timestamp;

/// Context to which the data of a version is bound. It cannot be decrypted in any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialContext {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub credential: CredentialId,
    /// Version of the credential.
    pub version: i64,
    /// ID of the version.
    pub id: VersionId,
}

/// Context to which the card of a credential is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardContext {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the credential.
    pub credential: CredentialId,
    /// Revision of the credential.
    pub revision: i64,
}

/// Seals credentials, and opens their cards. It cannot decrypt their data.
///
/// All methods return [`SealError::UnknownKey`] if a key is not among those given, or if the instance key that wraps it is not
/// loaded, and [`SealError::Integrity`] if it does not unwrap.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Sealer: Send + Sync {
    /// Returns the fingerprint of `data` (canonical JSON). Equal data of an organization has equal fingerprints, which
    /// disclose nothing outside of it.
    fn fingerprint(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        data: &SecretBytes,
    ) -> Result<Fingerprint, SealError>;

    /// Seals data with a new data key, and the data key with the active key. The data can be decrypted only for `namespace`.
    fn seal(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, SealError>;

    /// Seals a card with the active key.
    fn seal_card(&self, keys: &OrganizationKeys, context: CardContext, card: &Card) -> Result<Blob, SealError>;

    /// Opens a card.
    fn open_card(&self, keys: &OrganizationKeys, context: CardContext, sealed: &Blob) -> Result<Card, SealError>;

    /// Seals the card of a credential and the data keys of its versions again, with the active key. Decrypts no data.
    fn rewrap(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        credential: &SealedCredential,
    ) -> Result<SealedCredential, SealError>;

    /// Generates wrapped keys for a new organization.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_keys(&self, organization: OrganizationId, now: Timestamp) -> Result<OrganizationKeys, SealError>;

    /// Generates a wrapped successor for an organization's active key.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_key(&self, organization: OrganizationId, now: Timestamp) -> Result<WrappedKey, SealError>;
}

/// Port that decrypts credential data. Only the activation process has it.
pub trait Opener: Send + Sync {
    /// Decrypts the data of a credential of `namespace`.
    ///
    /// # Errors
    /// Those of [`Sealer`].
    fn open(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedData,
    ) -> Result<CredentialData, SealError>;
}
