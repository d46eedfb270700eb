//! Sealing and opening. Three ports, so that what may only seal cannot open.

use super::{SealError, SealedRow};
use crate::credential::{CredentialData, CredentialType, Fingerprint, Information, Metadata, SecretBytes};
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::namespace::Namespace;
use crate::sealed::{Blob, OrganizationKeyRecord, OrganizationKeys, SealedCredential, SealedMetadata};
use crate::time::Timestamp;
use async_trait::async_trait;

/// What a sealed part is bound to: it opens nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialContext {
    /// The organization.
    pub organization: OrganizationId,
    /// The credential.
    pub credential: CredentialId,
    /// Its version.
    pub version: i64,
}

/// Seals only. It cannot decrypt.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Sealer: Send + Sync {
    /// The fingerprint of `data` (canonical JSON): equal within the organization for equal data, meaningless outside.
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError>;

    /// Seals data under a new data key, and the data key and the information under `key`, which is the organization's.
    /// The data opens in `namespace` alone.
    ///
    /// Counts nothing: [`CountedSealer`](crate::usecase::CountedSealer) takes a use of `key` from the store before.
    ///
    /// # Errors
    /// [`SealError::NoKeys`] if the organization does not exist; [`SealError::UnknownKey`] if `key` is not one of its keys.
    async fn seal(
        &self,
        key: KeyId,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
        information: &Information,
    ) -> Result<SealedCredential, SealError>;

    /// Seals labels, description and declared expiries under `key`; the context's version is the credential's revision.
    /// Counts nothing either.
    ///
    /// # Errors
    /// Those of [`Sealer::seal`].
    async fn seal_metadata(
        &self,
        key: KeyId,
        context: CredentialContext,
        metadata: &Metadata,
    ) -> Result<SealedMetadata, SealError>;

    /// Keys for a new organization, wrapped.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_organization_keys(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeys, SealError>;

    /// Reads the instance keys again, after the store refused keys that were wrapped under one that is active no longer.
    ///
    /// # Errors
    /// The store failed, or the root key cannot be used.
    async fn reload_keys(&self) -> Result<(), SealError>;

    /// A successor for an organization's active key, wrapped.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_organization_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError>;
}

/// Seals again what one organization key has sealed, under another one. Opens no data: of that it moves the wrapped key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Rewrapper: Send + Sync {
    /// The rows, in their order, sealed under `to`, which is the organization's. A row that does not open is an error of
    /// its own and keeps no other from being sealed. Each row is one use of `to`, which is not counted here.
    ///
    /// # Errors
    /// The organization's keys cannot be read; [`SealError::UnknownKey`] if `to` is not one of them.
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        rows: Vec<SealedRow>,
    ) -> Result<Vec<Result<SealedRow, SealError>>, SealError>;
}

/// One row's sealed information and what it is bound to.
#[derive(Clone, Copy, Debug)]
pub struct SealedInformation<'a> {
    /// What it is bound to.
    pub context: CredentialContext,
    /// The organization key whose information key sealed it.
    pub key: KeyId,
    /// The sealed information.
    pub blob: &'a Blob,
}

/// Opens what a list shows; cannot open data.
#[async_trait]
pub trait InformationOpener: Send + Sync {
    /// Opens the information of rows of one organization, in their order. A row that does not open is an error of its
    /// own and keeps no other from being opened.
    ///
    /// # Errors
    /// The organization's keys cannot be read.
    async fn open_information<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Information, SealError>>, SealError>;

    /// The same for labels, descriptions and declared expiries; the version in a row's context is the revision that its
    /// metadata was sealed for.
    ///
    /// # Errors
    /// The organization's keys cannot be read.
    async fn open_metadata<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Metadata, SealError>>, SealError>;
}

/// Opens data: the activation side's alone.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Opener: Send + Sync {
    /// Decrypts the data of a credential of `namespace`.
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedCredential,
    ) -> Result<CredentialData, SealError>;
}
