//! From the errors of this crate to those of the ports.

use crate::aead::SealingError;
use crate::blob::OpenError;
use crate::context::Context;
use std::error::Error as StdError;
use vault_core::port::{NoEntropy, SealError};

/// A fault that is nobody's input.
pub(crate) fn fault(error: impl Into<Box<dyn StdError + Send + Sync>>) -> SealError {
    SealError::Fault(error.into())
}

/// Nothing could be sealed.
pub(crate) fn not_sealed(error: SealingError) -> SealError {
    fault(error)
}

/// Nothing could be drawn.
pub(crate) fn no_entropy(error: NoEntropy) -> SealError {
    fault(error)
}

/// A stored thing does not open.
pub(crate) fn does_not_open(context: &Context, error: OpenError) -> SealError {
    damaged(context, error.reason())
}

/// A stored thing opens, but what it holds does not fit.
pub(crate) fn damaged(context: &Context, reason: &'static str) -> SealError {
    SealError::Integrity { table: context.table(), column: context.column(), object: context.object(), reason }
}
