//! Conversions from this crate's errors to those of the ports.

use crate::aead::SealingError;
use crate::blob::OpenError;
use crate::context::Context;
use std::error::Error as StdError;
use vault_core::id::KeyId;
use vault_core::port::{NoEntropy, SealError};

/// A fault that no input causes.
pub(crate) fn fault(error: impl Into<Box<dyn StdError + Send + Sync>>) -> SealError {
    SealError::Fault(error.into())
}

/// Sealing failed.
pub(crate) fn not_sealed(error: SealingError) -> SealError {
    fault(error)
}

/// There is no entropy.
pub(crate) fn no_entropy(error: NoEntropy) -> SealError {
    fault(error)
}

/// A stored blob does not open.
pub(crate) fn does_not_open(context: &Context, error: OpenError) -> SealError {
    damaged(context, error.reason())
}

/// A stored blob names a key that its organization does not have.
pub(crate) fn unknown_key(context: &Context, key: KeyId) -> SealError {
    SealError::UnknownKey { table: context.table(), column: context.column(), object: context.object(), key }
}

/// A stored blob opens, but its plaintext does not fit.
pub(crate) fn damaged(context: &Context, reason: &'static str) -> SealError {
    SealError::Integrity { table: context.table(), column: context.column(), object: context.object(), reason }
}
