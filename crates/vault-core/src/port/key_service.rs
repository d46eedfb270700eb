//! Keys that never leave their place.

use super::Cause;
use crate::credential::SecretBytes;
use async_trait::async_trait;

/// A key in a token or a key management service. It seals and opens short secrets there, and never comes here.
#[async_trait]
pub trait KeyService: Send + Sync {
    /// What names the key for ever, wherever it is reached: its id in the token or the service.
    fn key(&self) -> &str;

    /// Seals `secret`, of at most 64 bytes, bound to `context`.
    ///
    /// # Errors
    /// See [`KeyServiceError`].
    async fn seal(&self, secret: &SecretBytes, context: &[u8]) -> Result<Vec<u8>, KeyServiceError>;

    /// Opens what was sealed for the same `context`.
    ///
    /// # Errors
    /// See [`KeyServiceError`].
    async fn open(&self, sealed: &[u8], context: &[u8]) -> Result<SecretBytes, KeyServiceError>;
}

/// A key service did not seal or open. The texts name token, key and address, and no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyServiceError {
    /// What was sealed was changed, moved, or sealed under another key.
    #[error("the key does not open it")]
    DoesNotOpen,
    /// The service is unreachable or overloaded, or the token is not there; a retry may succeed.
    #[error(transparent)]
    Unavailable(Cause),
    /// The service refuses, or the set-up is wrong; a retry does not help.
    #[error(transparent)]
    Refused(Cause),
}
