//! Login attempts and sessions.

pub(crate) mod attempts;
pub(crate) mod conclude;
mod decoys;
mod found;
mod reserve;
pub(crate) mod sessions;
