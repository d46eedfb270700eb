//! Credentials in the store.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::credential::CredentialType;
use crate::cursor::ListFilter;
use crate::digest::Digest;
use crate::id::{CredentialId, KeyId};
use crate::namespace::Namespace;
use crate::principal::{Principal, PrincipalRefusal};
use crate::sealed::{Blob, SealedCredential};
use crate::time::Timestamp;
use async_trait::async_trait;

/// An idempotency key and what it stands for, per account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key: 1 to 255 visible ASCII characters.
    pub key: String,
    /// The keyed digest of the request it came with.
    pub body: Digest,
}

/// Saves one credential.
#[derive(Clone, Debug)]
pub struct SaveCredential {
    /// For whom.
    pub principal: Principal,
    /// Now; the credential's creation time.
    pub now: Timestamp,
    /// Its id.
    pub id: CredentialId,
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
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// What saving came to. Only [`SaveOutcome::Saved`] changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// Saved.
    Saved,
    /// The same request was carried out before, and made this credential.
    Replayed(CredentialId),
    /// The idempotency key stands for another request.
    IdempotencyMismatch,
    /// The organization key is no longer active: seal again.
    KeyInactive,
    /// The organization has as many credentials as it may.
    LimitReached,
    /// The principal may no longer act.
    Refused(PrincipalRefusal),
}

/// Reads a page of a list, newest first.
#[derive(Clone, Debug)]
pub struct ListCredentials {
    /// For whom.
    pub principal: Principal,
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

/// Reads one credential.
#[derive(Clone, Debug)]
pub struct ShowCredential {
    /// For whom.
    pub principal: Principal,
    /// Now.
    pub now: Timestamp,
    /// Which.
    pub id: CredentialId,
}

/// Deletes one credential, its wrapped data key included.
#[derive(Clone, Debug)]
pub struct DeleteCredential {
    /// For whom.
    pub principal: Principal,
    /// Now.
    pub now: Timestamp,
    /// Which.
    pub id: CredentialId,
    /// The record of it; kept only if it was there.
    pub audit: SealedAuditRecord,
}

/// Credentials. Every method refuses a principal that may no longer act, in the same transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait CredentialRepository: Send + Sync {
    /// Saves one.
    async fn save_credential(&self, command: SaveCredential) -> Result<SaveOutcome, StoreError>;

    /// Reads a page.
    async fn list_credentials(
        &self,
        query: ListCredentials,
    ) -> Result<Result<Vec<StoredCredential>, PrincipalRefusal>, StoreError>;

    /// Reads one of the principal's organization.
    async fn show_credential(
        &self,
        query: ShowCredential,
    ) -> Result<Result<Option<StoredCredential>, PrincipalRefusal>, StoreError>;

    /// Deletes one of the principal's organization. `false`: not there. Of several at once, one is told `true`.
    async fn delete_credential(&self, command: DeleteCredential) -> Result<Result<bool, PrincipalRefusal>, StoreError>;
}
