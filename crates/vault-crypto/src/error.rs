//! Conversions from errors of this crate to errors of the ports.

use crate::aead::SealingError;
use crate::blob::OpenError;
use crate::context::Context;
use std::error::Error as StdError;
use vault_core::id::KeyId;
use vault_core::port::{NoEntropy, SealError};

/// Returns a fault that is independent of the input.
pub(crate) fn fault(error: impl Into<Box<dyn StdError + Send + Sync>>) -> SealError {
    SealError::Fault(error.into())
}

/// Converts a sealing error to a fault.
pub(crate) fn not_sealed(error: SealingError) -> SealError {
    fault(error)
}

/// Converts an entropy error to a fault.
pub(crate) fn no_entropy(error: NoEntropy) -> SealError {
    fault(error)
}

/// Returns the integrity error for a stored blob that cannot be opened.
pub(crate) fn does_not_open(context: &Context, error: OpenError) -> SealError {
    damaged(context, error.reason())
}

/// Returns the error for a stored blob whose key ID is unknown.
pub(crate) fn unknown_key(context: &Context, key: KeyId) -> SealError {
    SealError::UnknownKey { table: context.table(), column: context.column(), object: context.object(), key }
}

/// Returns the integrity error for stored data that is invalid for `reason`.
pub(crate) fn damaged(context: &Context, reason: &'static str) -> SealError {
    SealError::Integrity { table: context.table(), column: context.column(), object: context.object(), reason }
}
