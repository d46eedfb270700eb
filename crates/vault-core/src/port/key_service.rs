//! Port for keys that never leave a token or a key management service.

use super::Cause;
use crate::credential::SecretBytes;
use async_trait::async_trait;

/// Key in a token or a key management service, which seals and opens short secrets. The key never enters this process.
#[async_trait]
pub trait KeyService: Send + Sync {
    /// Returns the permanent name of the key: its ID in the token or the service, independent of the address.
    fn key(&self) -> &str;

    /// Seals `secret`, at most 64 bytes, and binds it to `context`.
    ///
    /// # Errors
    /// [`KeyServiceError::Unavailable`] if a retry may succeed, [`KeyServiceError::Refused`] if it cannot.
    async fn seal(&self, secret: &SecretBytes, context: &[u8]) -> Result<Vec<u8>, KeyServiceError>;

    /// Opens a secret that was sealed for the same `context`.
    ///
    /// # Errors
    /// [`KeyServiceError::DoesNotOpen`] if `sealed` is not authentic under this key and `context`,
    /// [`KeyServiceError::Unavailable`] if a retry may succeed, [`KeyServiceError::Refused`] if it cannot.
    async fn open(&self, sealed: &[u8], context: &[u8]) -> Result<SecretBytes, KeyServiceError>;
}

/// Error of a key service. Messages contain the token, the key and the address, never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyServiceError {
    /// The sealed secret was modified, moved, or sealed under another key.
    #[error("the key does not decrypt it")]
    DoesNotOpen,
    /// The service is unreachable or overloaded, or the token is absent. A retry may succeed.
    #[error(transparent)]
    Unavailable(Cause),
    /// The service refuses the request, or the configuration is wrong. A retry fails again.
    #[error(transparent)]
    Refused(Cause),
}
