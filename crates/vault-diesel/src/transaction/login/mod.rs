//! Login attempts.

pub(crate) mod attempts;
pub(crate) mod conclude;
mod decoys;
mod found;
mod reserve;
