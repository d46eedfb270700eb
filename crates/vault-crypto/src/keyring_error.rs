//! Errors of generating or loading keys.

use crate::aead::SealingError;
use crate::blob::OpenError;
use vault_core::id::KeyId;
use vault_core::port::NoEntropy;

/// Error of generating or loading an instance's keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// The keys are wrapped by another root key.
    #[error("wrong root key: this vault needs root key {expected}, but got root key {given}. Use root key {expected}")]
    WrongRoot {
        /// Root key in the record.
        expected: KeyId,
        /// The given root key.
        given: KeyId,
    },
    /// The instance key cannot be unwrapped.
    #[error("cannot decrypt instance key {key}: {cause}")]
    InstanceKey {
        /// ID of the instance key.
        key: KeyId,
        /// Why.
        #[source]
        cause: OpenError,
    },
    /// The unwrapped instance key does not decrypt the keyring document.
    #[error("cannot decrypt the vault's keyring with instance key {key}: {cause}")]
    Document {
        /// ID of the instance key.
        key: KeyId,
        /// Why.
        #[source]
        cause: OpenError,
    },
    /// New keys could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealingError),
    /// The operating system returns no randomness.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}
