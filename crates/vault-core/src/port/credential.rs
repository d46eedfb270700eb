//! Credentials in the store.

use super::{AuditLog, Find, KeyRepository, StoreError};
use crate::command::Command;
use crate::credential::CredentialType;
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
    /// The organization key.
    pub key: KeyId,
    /// The sealed information.
    pub information: Blob,
}

/// Deletes one credential, its wrapped data key included.
#[derive(Clone, Copy, Debug)]
pub struct DeleteCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub id: CredentialId,
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

    /// What an earlier save under this idempotency key made. `None`: the key is free; without a key, the principal alone
    /// is judged.
    ///
    /// Refused with [`Refusal::IdempotencyMismatch`].
    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<CredentialId>, StoreError>;

    /// Reads a page.
    async fn list_credentials(&self, query: ListCredentials) -> Result<Vec<StoredCredential>, StoreError>;

    /// Reads one of the principal's organization.
    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError>;

    /// Deletes a credential of the principal's organization. `false`: it does not exist. Of several calls at once, one
    /// returns `true`.
    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError>;
}

/// What the vault's members need of a store.
pub trait CredentialStore: CredentialRepository + KeyRepository + AuditLog {}

impl<S: CredentialRepository + KeyRepository + AuditLog + ?Sized> CredentialStore for S {}
