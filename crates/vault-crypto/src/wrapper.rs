//! Port for the root key, which wraps and unwraps two keys at start.

use crate::blob::OpenError;
use crate::context::Context;
use crate::key::SymmetricKey;
use async_trait::async_trait;
use std::error::Error as StdError;
use vault_core::id::KeyId;
use vault_core::sealed::Blob;

/// Root key in a file, a token or a key service. It never leaves its source; it only wraps and unwraps.
///
/// A start calls [`KeyWrapper::unwrap`] at most twice, regardless of the number of organizations: for the database key
/// and for the instance key.
#[async_trait]
pub trait KeyWrapper: Send + Sync {
    /// Returns the root key's id in its blobs.
    fn id(&self) -> KeyId;

    /// Wraps a key, bound to `context`.
    ///
    /// The blob begins with version, algorithm and root key id, as every blob does, for every kind of source.
    ///
    /// # Errors
    /// - The source rejects the request or is unreachable.
    /// - There is no entropy.
    async fn wrap(&self, context: &Context, key: &SymmetricKey) -> Result<Blob, WrapError>;

    /// Unwraps a key that was wrapped for the same `context`.
    ///
    /// # Errors
    /// - The blob does not open.
    /// - The source rejects the request or is unreachable.
    async fn unwrap(&self, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, WrapError>;
}

/// Error when the root key cannot wrap or unwrap.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrapError {
    /// The wrapped key is damaged, moved, or wrapped under another root key.
    #[error("cannot decrypt a wrapped key: {0}")]
    DoesNotOpen(#[from] OpenError),
    /// The source is unreachable; a retry may succeed.
    #[error("the root key is unavailable: {0}")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The source rejects the request, or there is no entropy.
    #[error("cannot use the root key: {0}")]
    Source(#[source] Box<dyn StdError + Send + Sync>),
}
