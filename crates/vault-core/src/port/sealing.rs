//! Ports for encryption and decryption, separated so that a component that only seals cannot decrypt.

use super::{SealError, SealedCredential};
use crate::credential::{Card, CredentialData, CredentialType, Fingerprint, SecretBytes};
use crate::id::{CredentialId, KeyId, OrganizationId, VersionId};
use crate::namespace::Namespace;
use crate::sealed::{Blob, OrganizationKeyRecord, OrganizationKeys, ReboundKeys, SealedData};
use crate::time::Timestamp;
use async_trait::async_trait;

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

/// Seals only. It cannot decrypt.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Sealer: Send + Sync {
    /// Returns the fingerprint of `data` (canonical JSON). Equal data of an organization has equal fingerprints, which
    /// disclose nothing outside of it.
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError>;

    /// Seals data with a new data key, and the data key with the organization's key `key`. The data can be decrypted only for
    /// `namespace`.
    ///
    /// Does not count the use of `key`: [`CountedSealer`](crate::usecase::CountedSealer) reserves it in the store
    /// before.
    ///
    /// # Errors
    /// [`SealError::NoKeys`] if the organization does not exist. [`SealError::UnknownKey`] if `key` is not one of its
    /// keys.
    async fn seal(
        &self,
        key: KeyId,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, SealError>;

    /// Seals a card with `key`. Does not count the use of `key` either.
    ///
    /// # Errors
    /// Those of [`Sealer::seal`].
    async fn seal_card(&self, key: KeyId, context: CardContext, card: &Card) -> Result<Blob, SealError>;

    /// Generates wrapped keys for a new organization.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_organization_keys(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeys, SealError>;

    /// Verifies that the keys of an organization, as read from the store, are those that were stored last: none was
    /// added, removed, or put into another state by other means.
    ///
    /// # Errors
    /// [`SealError::Integrity`] if they are not.
    async fn verify_organization_keys(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
    ) -> Result<(), SealError>;

    /// Verifies the keys `before`, and binds the fingerprint key to the keys `after`.
    ///
    /// # Errors
    /// Those of [`Sealer::verify_organization_keys`], or the operating system returns no randomness.
    async fn bind_organization_keys(
        &self,
        organization: OrganizationId,
        before: &OrganizationKeys,
        after: &OrganizationKeys,
    ) -> Result<ReboundKeys, SealError>;

    /// Reads the instance keys again, after the store refused keys that were wrapped with a key that is no longer
    /// active.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn reload_keys(&self) -> Result<(), SealError>;

    /// Generates a wrapped successor for an organization's active key.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_organization_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError>;
}

/// Port that reseals credentials with another key of their organization. It decrypts no data, only rewraps its data key.
#[async_trait]
pub trait Rewrapper: Send + Sync {
    /// Returns the credentials in their order, with cards and data keys resealed with the organization's key `to`. One that cannot
    /// be decrypted results in its own error, and does not prevent the others. Each credential is one use of `to`, which is not
    /// counted here.
    ///
    /// # Errors
    /// The organization's keys cannot be read. [`SealError::UnknownKey`] if `to` is not one of them.
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        credentials: Vec<SealedCredential>,
    ) -> Result<Vec<Result<SealedCredential, SealError>>, SealError>;
}

/// Port that decrypts cards. It cannot decrypt credential data.
#[async_trait]
pub trait CardOpener: Send + Sync {
    /// Decrypts cards of one organization, in their order. A card that cannot be decrypted results in its own error, and does
    /// not prevent the others.
    ///
    /// # Errors
    /// The organization's keys cannot be read.
    async fn open_cards<'a>(
        &self,
        organization: OrganizationId,
        cards: &[(CardContext, &'a Blob)],
    ) -> Result<Vec<Result<Card, SealError>>, SealError>;
}

/// Port that decrypts credential data. Only the activation process has it.
#[async_trait]
pub trait Opener: CardOpener {
    /// Decrypts the data of a credential of `namespace`.
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedData,
    ) -> Result<CredentialData, SealError>;
}
