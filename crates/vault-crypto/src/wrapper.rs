//! Where the root key lies, as the rest sees it: something that wraps and unwraps two keys at start.

use crate::blob::OpenError;
use crate::context::Context;
use crate::key::SymmetricKey;
use async_trait::async_trait;
use std::error::Error as StdError;
use vault_core::id::KeyId;
use vault_core::sealed::Blob;

/// A root key: a file, a token or a key service. It never leaves its source; it only wraps and unwraps.
///
/// A start calls [`KeyWrapper::unwrap`] at most twice, whatever the number of organizations: for the database
/// key and for the instance key.
#[async_trait]
pub trait KeyWrapper: Send + Sync {
    /// The root key's id, as its blobs name it.
    fn id(&self) -> KeyId;

    /// Wraps a key, bound to `context`. Whatever the source, the blob begins with a version, an algorithm and the
    /// root key's id, as every blob does.
    ///
    /// # Errors
    /// The source refuses or cannot be reached, or there is no entropy.
    async fn wrap(&self, context: &Context, key: &SymmetricKey) -> Result<Blob, WrapError>;

    /// Unwraps a key that was wrapped for the same `context`.
    ///
    /// # Errors
    /// It does not open, or the source refuses or cannot be reached.
    async fn unwrap(&self, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, WrapError>;
}

/// The root key could not wrap or unwrap.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrapError {
    /// What was to be unwrapped is damaged, moved, or wrapped under another root key.
    #[error("a wrapped key does not open: {0}")]
    DoesNotOpen(#[from] OpenError),
    /// The source refuses, cannot be reached, or there is no entropy.
    #[error("the root key cannot be used")]
    Source(#[source] Box<dyn StdError + Send + Sync>),
}
