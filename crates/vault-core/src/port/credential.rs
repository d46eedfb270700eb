//! Credentials in the store.

use super::{AuditLog, Find, KeyRepository, StoreError};
use crate::command::Command;
use crate::credential::{CredentialType, Superseded};
use crate::cursor::ListFilter;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::id::{AccountId, CredentialId, KeyId, OrganizationId};
use crate::namespace::Namespace;
use crate::principal::Principal;
use crate::sealed::{Blob, SealedCredential};
use crate::time::Timestamp;
use async_trait::async_trait;

/// An idempotency key and its request, per account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The account that used the key.
    pub account: AccountId,
    /// The key: 1 to 255 visible ASCII characters.
    pub key: String,
    /// The keyed digest of the request it came with.
    pub body: Digest,
}

/// Saves one credential, made at the command's time.
#[derive(Clone, Debug)]
pub struct SaveCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Its id.
    pub id: CredentialId,
    /// The version that its parts are sealed for.
    pub version: i64,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its sealed parts; the key they lie under must still be active.
    pub sealed: SealedCredential,
    /// The idempotency key, if one was given.
    pub idempotency: Option<Idempotency>,
    /// The most credentials the organization may have.
    pub limit: i64,
}

impl SaveCredential {
    /// The refusal of one credential too many.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "credentials", limit: self.limit }
    }
}

/// Reads a page of a list, newest first.
#[derive(Clone, Debug)]
pub struct ListCredentials {
    /// Who asks.
    pub principal: Principal,
    /// The principal's organization.
    pub organization: OrganizationId,
    /// Now.
    pub now: Timestamp,
    /// Which.
    pub filter: ListFilter,
    /// Begin after this one.
    pub after: Option<CredentialId>,
    /// At most so many.
    pub limit: usize,
}

/// A credential as stored, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCredential {
    /// Its id.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its version.
    pub version: i64,
    /// When it was saved.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How many changes clients have made to it, the save included. Every [`ChangeCredential`] names the one it has seen.
    pub revision: i64,
    /// The staged version, if there is one.
    pub staged: Option<i64>,
    /// The organization key.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// A version of a credential that is not the current one, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Its number.
    pub number: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ceased to be the current one; `None`: it is staged.
    pub superseded: Option<Superseded>,
    /// The organization key.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// A credential and its other versions, read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersions {
    /// The credential, with its current version.
    pub current: StoredCredential,
    /// When the current version was made.
    pub created_at: Timestamp,
    /// The highest number that a version of it ever had.
    pub highest: i64,
    /// The others, by number.
    pub others: Vec<StoredVersion>,
}

/// Changes a credential, if no other client has changed it since it was read.
#[derive(Clone, Debug)]
pub struct ChangeCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
    /// The revision that was read. The change makes the next one.
    pub revision: i64,
    /// The change.
    pub change: CredentialChange,
}

/// What changes of a credential. Numbers are those of versions that were read with the revision.
#[derive(Clone, Debug)]
pub enum CredentialChange {
    /// A new version is current; the one before is kept as a previous one.
    Replace {
        /// The new version, [`StoredVersions::highest`] plus one.
        version: NewVersion,
        /// When the version that was current is destroyed.
        destroy_at: Timestamp,
    },
    /// A new version is staged, and takes the place of one that was.
    Stage(NewVersion),
    /// Another version is current; the one before is kept as a previous one.
    Promote {
        /// The version.
        number: i64,
        /// When the version that was current is destroyed.
        destroy_at: Timestamp,
        /// Versions that are destroyed.
        destroyed: Vec<i64>,
    },
    /// A version that is not the current one is destroyed, its wrapped data key included.
    Destroy(i64),
}

/// A version to store.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its number, which its parts are sealed for.
    pub number: i64,
    /// Its sealed parts; the key they lie under must still be active.
    pub sealed: SealedCredential,
    /// The idempotency key, if one was given.
    pub idempotency: Option<Idempotency>,
    /// Versions that are destroyed, the current one among them if it is not kept.
    pub destroyed: Vec<i64>,
}

/// Deletes one credential, the wrapped data keys of all versions included.
#[derive(Clone, Copy, Debug)]
pub struct DeleteCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
    /// The revision that it must still have; `None`: whatever it has.
    pub revision: Option<i64>,
}

/// Credentials. Every method refuses a principal that may no longer act ([`StoreError::Denied`]), in the same
/// transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Saves one and gives its id; or, where the same request was carried out before, only the id that it made.
    ///
    /// Refused with [`Refusal::IdempotencyMismatch`]; [`Refusal::Contended`]: the organization key is no longer active,
    /// seal again; [`SaveCredential::limit_reached`].
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError>;

    /// The credential and version that an earlier request under this idempotency key made. `None`: the key is free;
    /// without a key, the principal alone is judged.
    ///
    /// Refused with [`Refusal::IdempotencyMismatch`].
    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError>;

    /// Reads a page.
    async fn list_credentials(&self, query: ListCredentials) -> Result<Vec<StoredCredential>, StoreError>;

    /// Reads one of the principal's organization.
    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError>;

    /// Reads one of the principal's organization with its other versions.
    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError>;

    /// Changes one of the principal's organization and gives the number of the version concerned; or, where the same
    /// request was carried out before, only the number that it gave.
    ///
    /// Refused with [`Refusal::NotFound`]; [`Refusal::IdempotencyMismatch`]; [`Refusal::Changed`]: it no longer has the
    /// revision; [`Refusal::Contended`]: the organization key is no longer active, seal again.
    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError>;

    /// Deletes a credential of the principal's organization. `false`: it does not exist. Of several calls at once, one
    /// returns `true`.
    ///
    /// Refused with [`Refusal::Changed`].
    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError>;
}

/// What the vault's members need of a store.
pub trait CredentialStore: CredentialRepository + KeyRepository + AuditLog {}

impl<S: CredentialRepository + KeyRepository + AuditLog + ?Sized> CredentialStore for S {}
