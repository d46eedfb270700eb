//! Ports for the signing keys of federation tokens: storage, encryption, and the check of their publication.

use super::{KeyRepository, SealError, StoreError};
use crate::audit::SealedAuditRecord;
use crate::federation::{FederationIssuer, Jwk, PublicationFailure, PublishedDocuments, StoredFederationKey};
use crate::id::KeyId;
use crate::sealed::{Blob, InstanceRecord};
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;

/// Replaces the keyring document of the instance.
#[derive(Clone, Debug)]
pub struct ReplaceKeyring {
    /// The document as read. It must still be stored.
    pub current: Blob,
    /// Its successor.
    pub next: Blob,
}

/// Changes signing keys and the keyring that names them. Everything is changed, or nothing.
#[derive(Clone, Debug, Default)]
pub struct ChangeFederationKeys {
    /// New rows.
    pub added: Vec<StoredFederationKey>,
    /// Changed rows. Each stored row must have the previous version. The findings of publication checks are kept.
    pub changed: Vec<StoredFederationKey>,
    /// Rows to remove, with their versions.
    pub removed: Vec<(KeyId, i64)>,
    /// The new keyring, if it changes.
    pub keyring: Option<ReplaceKeyring>,
    /// Audit records of the change.
    pub audit: Vec<SealedAuditRecord>,
}

/// Finding of a publication check about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPublication {
    /// The key.
    pub key: KeyId,
    /// Time of the previous check, as read. It must still be stored, so that concurrent checks record one finding.
    pub seen: Option<Timestamp>,
    /// Time of this check.
    pub checked_at: Timestamp,
    /// The finding, or `None` if providers can read the key.
    pub failure: Option<PublicationFailure>,
}

/// Port for the rows of signing keys. There are few.
#[async_trait]
pub trait FederationKeyRepository: Send + Sync {
    /// Returns all signing keys, ordered by ID. A row that cannot be decoded is returned as its ID, so that it does not
    /// hide the others.
    async fn federation_keys(&self) -> Result<Vec<Result<StoredFederationKey, String>>, StoreError>;

    /// Adds, changes and removes signing keys. Returns `false` and changes nothing if a row no longer has the expected
    /// version.
    ///
    /// # Errors
    /// [`Refusal::Contended`](crate::Refusal::Contended) if another keyring document has been stored since, or a value is
    /// sealed or signed with an instance key that is no longer active.
    async fn change_federation_keys(&self, command: ChangeFederationKeys) -> Result<bool, StoreError>;

    /// Records a publication check. Returns `false` and records nothing if another check was recorded since.
    async fn record_publication(&self, checks: Vec<RecordPublication>) -> Result<bool, StoreError>;
}

/// Ports that the administration of signing keys requires of a store.
pub trait FederationStore: FederationKeyRepository + KeyRepository {}

impl<S: FederationKeyRepository + KeyRepository + ?Sized> FederationStore for S {}

/// Port that encrypts signing keys, and changes the keyring that names them.
pub trait FederationKeySealer: Send + Sync {
    /// Returns the public key of an unencrypted RSA private key (PKCS #8 in PEM, 2,048 to 4,096 bits, exponent 65537), and
    /// the private key, sealed for the row `id`. Returns `None` if the text is no such key.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn import(&self, id: KeyId, pem: &SecretString) -> Result<Option<(Jwk, Blob)>, SealError>;

    /// Returns the keyring of `current` with the signing keys `added` and without those of `dropped`. Ignores keys that are
    /// already added or dropped.
    ///
    /// # Errors
    /// The keyring document cannot be decrypted, it is full, or the operating system returns no randomness.
    fn keyring(
        &self,
        current: &InstanceRecord,
        added: &[KeyId],
        dropped: &[KeyId],
        now: Timestamp,
    ) -> Result<Blob, SealError>;
}

/// Port that verifies stored signing keys. It returns no private key.
pub trait FederationKeyVerifier: Send + Sync {
    /// Returns the signing keys that the loaded keyring names.
    fn named(&self) -> Vec<KeyId>;

    /// Checks that the private key can be decrypted and belongs to the public key.
    ///
    /// # Errors
    /// The private key cannot be decrypted, or is another one.
    fn verify(&self, key: &StoredFederationKey) -> Result<(), SealError>;
}

/// Port that receives the key with which federation tokens are signed.
pub trait FederationSigningKey: Send + Sync {
    /// Signs with this key from now on, or with none.
    ///
    /// # Errors
    /// The private key cannot be decrypted. No key is used in this case.
    fn select(&self, key: Option<&StoredFederationKey>) -> Result<(), SealError>;
}

/// Port that reads the published documents as providers do.
#[async_trait]
pub trait IssuerPublication: Send + Sync {
    /// Fetches the discovery document, and the key set that it names if its URL is
    /// [below the issuer](FederationIssuer::published_key_set_url).
    ///
    /// # Errors
    /// The finding if a document cannot be fetched or names no such key set.
    async fn fetch(&self, issuer: &FederationIssuer) -> Result<PublishedDocuments, PublicationFailure>;
}
